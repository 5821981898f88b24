# What is slow, and why, of real workers.
inferstat_script_test(cli.insight test_insight.sh LABELS cli)
inferstat_script_test(cli.why test_why.sh LABELS cli)

# What is going on now, of engines that are killed, stopped and started again.
inferstat_script_test(cli.now test_now.sh LABELS cli)
set_property(TEST cli.now APPEND PROPERTY ENVIRONMENT "FAULT_ENGINE=$<TARGET_FILE:fault_engine>")

# Devices with trouble, played by the fake management library.
inferstat_script_test(cli.health test_health.sh LABELS cli)

# Alerts: their states over restarts, and what administrators do to them.
inferstat_script_test(cli.alerts test_alerts.sh LABELS cli)
set_property(TEST cli.alerts APPEND PROPERTY ENVIRONMENT "FAULT_ENGINE=$<TARGET_FILE:fault_engine>")
