# Tests over streams share what makes their waits deterministic.
inferstat_unit_test(test_stream LINK inferstat_device)
target_sources(test_stream PRIVATE stream_fixture.c)
inferstat_unit_test(test_fault LINK inferstat_device)
target_sources(test_fault PRIVATE stream_fixture.c)
inferstat_unit_test(test_stream_graphs LINK inferstat_device)
target_sources(test_stream_graphs PRIVATE stream_fixture.c)
