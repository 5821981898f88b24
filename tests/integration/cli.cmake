# The command line against its manual, and against a real collector and worker.
inferstat_script_test(cli.man test_man.sh LABELS cli)
inferstat_script_test(cli.live test_cli.sh LABELS cli)
inferstat_script_test(cli.query test_query.sh "$<TARGET_FILE:make_store>" LABELS cli)
inferstat_script_test(cli.completion test_completion.sh "$<TARGET_FILE:make_store>" LABELS cli)
inferstat_script_test(cli.doctor test_doctor.sh LABELS cli)
inferstat_script_test(cli.audit test_audit.sh LABELS cli)
inferstat_script_test(cli.keys test_keys.sh LABELS cli)
inferstat_script_test(cli.admin test_admin.sh LABELS cli)
inferstat_script_test(cli.pages test_pages.sh LABELS cli)
set_property(TEST cli.pages APPEND PROPERTY ENVIRONMENT "MAKE_HISTORY=$<TARGET_FILE:make_history>")
inferstat_script_test(cli.compare test_compare.sh LABELS cli)
set_property(TEST cli.compare APPEND PROPERTY ENVIRONMENT
             "MAKE_MEASURED=$<TARGET_FILE:make_measured>")
