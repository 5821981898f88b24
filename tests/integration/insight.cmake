# What is slow, and why, of real workers.
inferstat_script_test(cli.insight test_insight.sh LABELS cli)
