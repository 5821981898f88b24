-- Adds to the store of store.sql four hosts with the same model and device, one of
-- them with half the lanes; on another a request while its device is throttled; and
-- cold and warm loads.  All of 2026-03-30, 10:00 UTC and later.
WITH RECURSIVE host(number) AS (SELECT 1 UNION ALL SELECT number + 1 FROM host WHERE number < 4)
INSERT INTO name(id, text) SELECT 100 + number, 'host-' || number FROM host;
INSERT INTO name(id, text) VALUES(110, 'llama-7b');

WITH RECURSIVE host(number) AS (SELECT 1 UNION ALL SELECT number + 1 FROM host WHERE number < 4)
INSERT INTO run(run, started_ns, received_ns, uuid, host, pid, ended_ns, "end", worker_version,
  protocol, os, kernel, cpu, cpu_count, host_memory_bytes, device_count, produced, stored,
  duplicates, heard_ns)
SELECT 10 + number, 1774864800000000000, 1774864800000000000,
  'beef000' || number || '-0000-4000-8000-000000000000', 100 + number, 1, 1774868400000000000, 1,
  '0.1.0', 1, 'Debian GNU/Linux 12', '6.1.0', 'EPYC', 16, 68719476736, 1, 0, 0, 0,
  1774868400000000000
FROM host;

INSERT INTO device(run, stream, number, started_ns, received_ns, ordinal, name, memory_bytes,
  pcie_generation, pcie_width, pcie_generation_max, pcie_width_max)
SELECT run, 0, 1, started_ns, received_ns, 0, 6, 1, 5, CASE run WHEN 14 THEN 8 ELSE 16 END, 5, 16
FROM run WHERE run > 10;

-- 20 requests a host, every 10 s: 100 tokens in 1 s, on host-4 in 1.07 s.
WITH RECURSIVE request(number) AS
  (SELECT 1 UNION ALL SELECT number + 1 FROM request WHERE number < 20)
INSERT INTO inference(run, stream, number, started_ns, received_ns, model, device, request,
  finish, prompt_tokens, cached_prompt_tokens, generated_tokens, queue_ns, prefill_ns, ttft_ns,
  decode_ns, e2e_ns, host_memory_bytes, concurrent_requests)
SELECT run, 0, 10 + request.number, started_ns + request.number * 10000000000,
  received_ns, 110, 6, request.number, 1, 100, 0, 100, 1000000, 50000000, 51000000,
  990000000 + CASE run WHEN 14 THEN 70000000 ELSE 0 END,
  1041000000 + CASE run WHEN 14 THEN 70000000 ELSE 0 END, 1, 1
FROM run, request WHERE run > 10;

-- On host-1 the last one takes 3 s more, throttled; on host-2 the last one has 60
-- tokens more and waits for a load.
UPDATE inference SET decode_ns = decode_ns + 3000000000, e2e_ns = e2e_ns + 3000000000
WHERE run = 11 AND request = 20;
INSERT INTO device_sample(run, stream, number, started_ns, received_ns, device,
  throttle_reasons)
SELECT run, 0, 50 + request, started_ns - 500000000, received_ns, 6, 36 * (request = 20)
FROM inference WHERE run = 11;
UPDATE inference SET queue_ns = 401000000, ttft_ns = 451000000, generated_tokens = 160,
  decode_ns = 1590000000, e2e_ns = 2041000000 WHERE run = 12 AND request = 20;

-- A cold load on host-1 and a warm one on each other host, where host-2 has one more.
INSERT INTO load(run, stream, number, started_ns, received_ns, model, device, duration_ns, status,
  model_bytes, host_memory_before_bytes, host_memory_after_bytes, page_cache_ratio)
SELECT run, 0, 2, started_ns, received_ns, 110, 6, CASE run WHEN 11 THEN 8000000000 ELSE 2000000000
  END, 0, 4000000000, 0, 0, run > 11 FROM run WHERE run > 10
UNION ALL
SELECT 12, 0, 3, started_ns + 199500000000, received_ns, 110, 6, 900000000, 0, 4000000000, 0, 0, 1
FROM run WHERE run = 12;
INSERT INTO load_stage(run, stream, number, started_ns, received_ns, parent, ordinal, stage,
  duration_ns)
SELECT run, 0, 100 + number, started_ns, received_ns, number, 0, 9, 500000000 FROM load
WHERE run > 10
UNION ALL
SELECT run, 0, 200 + number, started_ns + 500000000, received_ns, number, 1, 11,
  duration_ns - 600000000 FROM load WHERE run > 10 AND duration_ns > 1000000000;
