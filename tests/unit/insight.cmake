# What is slow, and why: slow requests, loads by stage, hosts beside each other.
inferstat_unit_test(test_blame LINK inferstat_store)
