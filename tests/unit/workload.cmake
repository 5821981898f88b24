inferstat_unit_test(test_vectors LINK inferstat_workload)
target_sources(test_vectors PRIVATE vectors.c)
