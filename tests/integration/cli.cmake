# The command line against its manual.
inferstat_script_test(cli.man test_man.sh LABELS cli)
