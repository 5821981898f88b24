# Tests over streams share what makes their waits deterministic.
inferstat_unit_test(test_stream LINK inferstat_device)
target_sources(test_stream PRIVATE stream_fixture.c)
