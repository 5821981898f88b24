# What is slow, and why: slow requests, loads by stage, hosts beside each other.
inferstat_unit_test(test_latency_attribution LINK inferstat_store)
inferstat_unit_test(test_store_slowest
  LINK inferstat_store inferstat_test_folder inferstat_test_rows PkgConfig::SQLITE3 m)
inferstat_unit_test(test_store_stages
  LINK inferstat_store inferstat_test_folder inferstat_test_rows PkgConfig::SQLITE3 m)
inferstat_unit_test(test_store_fleet
  LINK inferstat_store inferstat_test_folder inferstat_test_rows PkgConfig::SQLITE3 m)
