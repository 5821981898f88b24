# The real dashboard in a real terminal (tmux).
inferstat_script_test(tui.screens test_tui_screens.sh LABELS tui)
inferstat_script_test(tui.terminal test_tui_terminal.sh LABELS tui)
inferstat_script_test(tui.live test_tui_live.sh LABELS tui)
inferstat_script_test(tui.times test_tui_times.sh LABELS tui)
inferstat_script_test(tui.themes test_tui_themes.sh LABELS tui)
