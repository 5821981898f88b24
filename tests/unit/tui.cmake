# The dashboard, with dashboards made by hand.
inferstat_room(inferstat_test_tui "${PROJECT_SOURCE_DIR}/tests/support/tui_fixture.c"
               LINK inferstat_tui)
inferstat_unit_test(test_tui_asks LINK inferstat_test_tui inferstat_tui)
inferstat_unit_test(test_tui_canvas LINK inferstat_test_tui inferstat_tui)
inferstat_unit_test(test_tui_feed THREADS LINK inferstat_test_tui inferstat_tui)
inferstat_unit_test(test_tui_filter LINK inferstat_test_tui inferstat_tui)
inferstat_unit_test(test_tui_grid LINK inferstat_test_tui inferstat_tui)
inferstat_unit_test(test_tui_keys LINK inferstat_test_tui inferstat_tui)
inferstat_unit_test(test_tui_layout LINK inferstat_test_tui inferstat_tui)
inferstat_unit_test(test_tui_model LINK inferstat_test_tui inferstat_tui)
inferstat_unit_test(test_tui_pipelines LINK inferstat_test_tui inferstat_tui)
inferstat_unit_test(test_tui_plots LINK inferstat_test_tui inferstat_tui)
inferstat_unit_test(test_tui_screens LINK inferstat_test_tui inferstat_tui)
target_compile_definitions(test_tui_screens
                           PRIVATE GOLDEN_FOLDER="${PROJECT_SOURCE_DIR}/tests/golden/tui")
