# The dashboard, with dashboards made by hand.
inferstat_room(inferstat_test_tui "${PROJECT_SOURCE_DIR}/tests/support/tui_fixture.c"
               LINK inferstat_tui)
foreach(name feed canvas plots layout keys asks grid model screens)
  inferstat_unit_test(test_tui_${name} LINK inferstat_test_tui inferstat_tui)
endforeach()
target_compile_definitions(test_tui_screens
                           PRIVATE GOLDEN_FOLDER="${PROJECT_SOURCE_DIR}/tests/golden/tui")
