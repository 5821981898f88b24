-- Runs that sample the devices of the hosts ordinary and slow, and say other things of these hosts;
-- on slow the first device is held back most of the time, and the second one has a lower clock.
CREATE TEMP TABLE copy AS SELECT * FROM run WHERE run IN (1, 3);
UPDATE temp.copy SET run = run + 10, uuid = '000000' || (run + 10) || '-0000-4000-8000-000000000000',
    cpu = 'another cpu', driver = '1', produced = 240, stored = 240;
INSERT INTO run SELECT * FROM temp.copy;
INSERT INTO name(text) VALUES('gpu0'), ('gpu1');
WITH RECURSIVE s(k) AS (SELECT 0 UNION ALL SELECT k + 1 FROM s WHERE k < 119)
INSERT INTO device_sample(run, stream, number, started_ns, received_ns, device,
    gpu_util_ratio_stored, memory_used_bytes_stored, temperature_celsius, power_watts_stored,
    sm_clock_hz_stored, throttle_reasons)
SELECT r.run, 0, 2 * k + (n.text = 'gpu1') + 1, r.started_ns + k * 5000000000, r.started_ns, n.id,
    iif(n.text = 'gpu0', 9700, 0), iif(n.text = 'gpu0', 41943040, 1024),
    iif(n.text = 'gpu0', 62 + (r.run = 13) * 21, 30), iif(n.text = 'gpu0', 650000, 75000),
    iif(n.text = 'gpu1', iif(r.run = 13, 210, 345), iif(r.run = 13 AND k % 10 > 2, 1410, 1980)),
    iif(n.text = 'gpu0' AND r.run = 13 AND k % 10 > 2, 64, 1)
FROM run r, s, name n WHERE r.run IN (11, 13) AND n.text IN ('gpu0', 'gpu1');
INSERT INTO ledger(run, kind, stored) VALUES(11, 10, 240), (13, 10, 240);
INSERT INTO stream(run, stream, next, produced, unnumbered) VALUES(11, 0, 241, 240, 0),
    (13, 0, 241, 240, 0);
INSERT INTO range VALUES(11, 0, 1, 240, 0, NULL, NULL, NULL, NULL),
    (13, 0, 1, 240, 0, NULL, NULL, NULL, NULL);
