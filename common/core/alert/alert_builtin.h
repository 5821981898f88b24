// The built-in alert rules: lines of an alert file.
#pragma once

// TTFT, speed and load time are the targets of an engine for one user; a larger installation
// replaces or disables them.  Of few requests the 95th percentile is that of one or two: it needs
// 100 of them, the median 5.  From hour to hour speed differs by more than the windows of a short
// baseline show: at 25 % slower_than_baseline would be false once in 300 hours of ten hosts.
#define ALERT_BUILTIN_TEXT                                                                         \
    "alert slow_first_token: avg ttft_ns by model,host over 5m when p50 > 3s for 2m"               \
    " critical 4.5s least 5\n"                                                                     \
    "alert slow_first_tokens: avg ttft_ns by model,host over 5m when p95 > 3s for 2m"              \
    " critical 4.5s least 100\n"                                                                   \
    "alert slow_tokens: avg tokens_per_second by model,host over 5m when p50 < 10t/s for 2m"       \
    " critical 5t/s least 5\n"                                                                     \
    "alert slow_load: avg load.duration_ns by model,host where status=ok over 10m"                 \
    " when max > 30s critical 45s\n"                                                               \
    "alert requests_failed: avg failed_ratio over 5m when max > 5% critical 50%\n"                 \
    "alert host_memory: avg host_sample.memory_used_ratio by host over 5m when mean > 90%"         \
    " for 2m critical 97% clear 87% least 10\n"                                                    \
    "alert device_hot: avg slowdown_margin_celsius over 1m when min < 3C for 1m clear 5C\n"        \
    "alert device_xid: avg xid_count over 10m when max > 0\n"                                      \
    "alert pcie_below_maximum: avg pcie_narrow_ratio over 5m when mean > 50% for 2m\n"             \
    "alert ecc_uncorrected: avg ecc_uncorrected_count over 1h when max > 0\n"                      \
    "alert device_throttled: avg device_sample.throttled_ratio by host,device over 5m"             \
    " when mean > 10% for 1m critical 50% least 10\n"                                              \
    "alert device_memory: avg device_sample.memory_used_ratio by host,device over 5m"              \
    " when mean > 95% for 2m clear 93% least 10\n"                                                 \
    "alert records_dropped: avg records_dropped over 10m when max > 0\n"                           \
    "alert run_killed: avg runs_killed over 10m when max > 0\n"                                    \
    "alert host_silent: avg host_silent_ns over 1d when max > 30s for 30s critical 10m\n"          \
    "alert clock_off: avg clock_offset_ns over 10m when max > 1s for 1m critical 1m\n"             \
    "alert disk_full: avg disk_full_in_ns over 6h when min < 1d for 5m critical 2h\n"              \
    "alert slower_than_baseline: avg baseline_slower_ratio over 10m when mean > 50% critical "     \
    "100%\n"
