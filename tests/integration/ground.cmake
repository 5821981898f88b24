# The project's own checks, its installation and its scripts.
inferstat_script_test(checks.self_test test_checks.py)
inferstat_script_test(support.self_test test_support.sh)
inferstat_script_test(scripts.setup test_setup.sh)
inferstat_script_test(scripts.build test_build.sh)
inferstat_script_test(install test_install.sh)
inferstat_script_test(run test_run.sh)
inferstat_script_test(demo_fleet test_demo_fleet.sh TIMEOUT 300)
