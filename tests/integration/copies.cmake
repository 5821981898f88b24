# Copies of stores: backups, bundles, imports.
inferstat_script_test(cli.copies test_copies.sh LABELS cli)
inferstat_script_test(cli.sealing test_sealing.sh LABELS cli)
set_property(TEST cli.sealing APPEND PROPERTY ENVIRONMENT
             "MAKE_HISTORY=$<TARGET_FILE:make_history>")
