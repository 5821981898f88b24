inferstat_fuzz_target(fuzz_codec LINK inferstat_wire)

inferstat_fuzz_target(fuzz_keys LINK inferstat_collector inferstat_wire)
target_sources(fuzz_keys PRIVATE feed.c)
inferstat_fuzz_target(fuzz_config LINK inferstat_sys)
target_sources(fuzz_config PRIVATE feed.c)
inferstat_fuzz_target(fuzz_zmtp LINK inferstat_wire)
target_sources(fuzz_zmtp PRIVATE "${PROJECT_SOURCE_DIR}/tests/support/zmtp_rig.c")
