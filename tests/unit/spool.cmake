inferstat_room(inferstat_spool_rig ../support/spool_rig.c LINK inferstat_monitor)

inferstat_unit_test(test_spool LINK inferstat_spool_rig inferstat_test_folder)
