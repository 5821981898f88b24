inferstat_room(inferstat_spool_rig ../support/spool_rig.c LINK inferstat_monitor)

inferstat_unit_test(test_spool LINK inferstat_spool_rig inferstat_test_folder)
inferstat_unit_test(test_spool_faults LINK inferstat_spool_rig inferstat_test_folder)
target_sources(test_spool PRIVATE spool_fixture.c)
target_sources(test_spool_faults PRIVATE spool_fixture.c)
