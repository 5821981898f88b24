-- Samples of the host and the devices of run 3, a second apart, processes and events of theirs; after
-- store.sql.
DELETE FROM device_sample;
INSERT INTO name(id, text) VALUES (30, 'cuda:1'), (31, 'throttling'), (32, 'memory_pressure');

WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 9)
INSERT INTO device_sample(run, stream, number, started_ns, received_ns, device,
    gpu_util_ratio_stored, memory_used_bytes_stored, temperature_celsius, power_watts_stored,
    energy_joules_stored, sm_clock_hz_stored, throttle_reasons, duration_ns,
    energy_used_joules_stored, memory_total_bytes_stored, memory_util_ratio_stored)
SELECT 3, 0, 100 + 2 * i + d, 1774751401000000000 + i * 1000000000, 1774751403000000000 + i * 1000000000,
    iif(d, 30, 6), 0.5 + i / 20.0, (10 + i) * 1048576, 60 + i, 300.5 + i, 1000 + 300.5 * i,
    1980 - i, iif(d, 4, iif(i = 3, NULL, 1)), iif(i, 1000000000, NULL), 300.5 + i,
    83886080, 0.25
FROM n, (SELECT 0 AS d UNION ALL SELECT 1) ORDER BY i, d;

INSERT INTO host_sample(run, stream, number, started_ns, received_ns, duration_ns, cpu_util_ratio,
    load_1m, memory_total_bytes, memory_available_bytes, memory_pressure_ratio,
    memory_stalled_ratio, disk_busy_ratio, network_rx_bytes_per_second) VALUES
    (3, 0, 120, 1774751401000000000, 1774751402000000000, NULL, NULL, 1.53, 68719476736,
     34359738368, NULL, NULL, NULL, NULL),
    (3, 0, 121, 1774751401000000000, 1774751403000000000, 1000000000, 0.25, 1.5, 68719476736,
     17179869184, 0.125, 0.0625, 0.5, 125000.0);

INSERT INTO device_process(run, stream, number, started_ns, received_ns, device, pid, name,
    memory_bytes) VALUES
    (3, 0, 122, 1774751401000000000, 1774751402000000000, 6, 4003, 'inferstat-worker', 1073741824),
    (3, 0, 123, 1774751401000000000, 1774751402000000000, 6, 77,
     char(27) || '[2J, "mine"', NULL);

INSERT INTO event(run, stream, number, started_ns, received_ns, event, device, duration_ns, code,
    detail) VALUES
    (3, 0, 124, 1774751401000000000, 1774751402000000000, 31, 30, NULL, 4, 'power cap'),
    (3, 0, 125, 1774751401000000000, 1774751412000000000, 31, 30, 10000000000, 4, 'power cap'),
    (3, 0, 126, 1774751405000000000, 1774751406000000000, 32, NULL, 0, NULL, NULL);
