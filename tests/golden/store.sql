-- A small store whose every number is fixed, so that what the command line prints of it can be
-- compared with texts on file.
--
-- Three runs on two hosts, from 2026-03-29 00:31 UTC on, half an hour before the clocks of the tests
-- go forward: one closed, one killed with losses, one open, two hours later.  Names hold what
-- listings have to cope with.

INSERT INTO name(id, text) VALUES
    (1, 'gpu-host-1'),
    (2, 'büro'),
    (3, 'stories-15M'),
    (4, '日本, "quoted"'),
    (5, 'cpu'),
    (6, 'NVIDIA H200'),
    (7, 'device_selection'),
    (8, 'file_opening'),
    (9, 'read_header'),
    (10, 'tokenizer_init'),
    (11, 'model_building'),
    (12, 'tokenize'),
    (13, 'encode'),
    (14, 'iqp 16 qubits f64');

INSERT INTO run(run, started_ns, received_ns, uuid, host, pid, ended_ns, "end", last_activity,
    worker_version, protocol, os, kernel, cpu, cpu_count, host_memory_bytes, device_count,
    clock_offset_ns, clock_error_ns, produced, stored, duplicates, heard_ns) VALUES
    (1, 1774744260000000000, 1774744260001000000, '11111111-2222-4333-8444-555555555555', 1,
     4001, 1774744290000000000, 1, NULL, '0.1.0', 1, 'Debian GNU/Linux 12', '6.1.0', 'EPYC',
     16, 68719476736, 1, NULL, NULL, 16, 16, 0, 1774744290000000000),
    (2, 1774744320000000000, 1774744320001000000, 'aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee', 2,
     4002, 1774744350000000000, 2, 'decoding request 2', '0.1.0', 1, 'Debian GNU/Linux 12',
     '6.1.0', 'EPYC', 16, 68719476736, 1, 1200000, 300000, 18, 13, 1, 1774744350000000000),
    (3, 1774744380000000000, 1774744380001000000, '33333333-0000-4000-8000-000000000003', 1,
     4003, NULL, 0, 'idle', '0.1.0', 1, 'Debian GNU/Linux 12', '6.1.0', 'EPYC', 16,
     68719476736, 1, -52000, 90000, 8, 4, 2, 1774744410000000000);

INSERT INTO device(id, run, stream, number, started_ns, received_ns, ordinal, name, memory_bytes,
    compute_capability, pcie_generation, pcie_width, memory_bandwidth_bytes_per_second,
    power_cap_watts, sm_clock_max_hz, memory_clock_max_hz) VALUES
    (1, 1, 0, 1, 1774744260000000000, 1774744262000000000, 0, 6, 151397597184, '9.0', 5, 16,
     4800000000000.0, 700.0, 1980000000, 3201000000),
    (2, 2, 0, 1, 1774744320000000000, 1774744322000000000, 0, 5, 17179869184, NULL, NULL,
     NULL, NULL, NULL, NULL, NULL);

INSERT INTO model(id, run, stream, number, started_ns, received_ns, name, format, architecture,
    parameters) VALUES
    (1, 1, 0, 2, 1774744260000000000, 1774744262000000000, 3, 'gguf', 'llama', 15191712),
    (2, 2, 0, 2, 1774744320000000000, 1774744322000000000, 4, 'gguf', 'llama', 15191712);

INSERT INTO startup(id, run, stream, number, started_ns, received_ns, duration_ns,
    memory_start_bytes, memory_ready_bytes) VALUES
    (1, 1, 0, 3, 1774744260000000000, 1774744262000000000, 45000000, 4194304, 12582912),
    (2, 2, 0, 3, 1774744320000000000, 1774744322000000000, 45000000, 4194304, 12582912);

INSERT INTO load(id, run, stream, number, started_ns, received_ns, model, device, duration_ns,
    status, error, model_bytes, host_memory_before_bytes, host_memory_after_bytes,
    page_cache_ratio) VALUES
    (1, 1, 0, 4, 1774744260100000000, 1774744262100000000, 3, 6, 1500000000, 0, NULL,
     60817408, 12582912, 74448896, 0.25),
    (2, 2, 0, 4, 1774744320100000000, 1774744322100000000, 4, 5, 3000000, 1,
     'not GGUF: magic is "' || char(27) || '[31mELF' || char(1) || '"' || char(10), 0,
     12582912, 11534336, NULL),
    (3, 2, 0, 5, 1774744320200000000, 1774744322200000000, 4, 5, 61243000000, 0, NULL,
     60817408, 12582912, 74448896, 0.25);

INSERT INTO load_stage(id, run, stream, number, started_ns, received_ns, parent, ordinal, stage,
    duration_ns) VALUES
    (1, 1, 0, 5, 1774744260100000000, 1774744262100000000, 4, 0, 7, 1200000),
    (2, 1, 0, 6, 1774744260101200000, 1774744262101200000, 4, 1, 8, 300000),
    (3, 1, 0, 7, 1774744260101500000, 1774744262101500000, 4, 2, 9, 20000000),
    (4, 1, 0, 8, 1774744260121500000, 1774744262121500000, 4, 3, 10, 100000000),
    (5, 1, 0, 9, 1774744260221500000, 1774744262221500000, 4, 4, 11, 1370000000),
    (6, 2, 0, 6, 1774744320200000000, 1774744322200000000, 5, 0, 7, 2000000),
    (7, 2, 0, 7, 1774744320202000000, 1774744322202000000, 5, 1, 8, 1000000),
    (8, 2, 0, 8, 1774744320203000000, 1774744322203000000, 5, 2, 9, 40000000),
    (9, 2, 0, 9, 1774744320243000000, 1774744322243000000, 5, 3, 10, 200000000),
    (10, 2, 0, 10, 1774744320443000000, 1774744322443000000, 5, 4, 11, 61000000000);

INSERT INTO inference(id, run, stream, number, started_ns, received_ns, model, device, request,
    finish, prompt_tokens, cached_prompt_tokens, generated_tokens, queue_ns, prefill_ns, ttft_ns,
    decode_ns, e2e_ns, itl_max_ns, itl_p99_ns, host_memory_bytes, device_memory_bytes) VALUES
    (1, 1, 0, 10, 1774744262000000000, 1774744264000000000, 3, 6, 1, 1, 9, 0, 64, 1000000,
     20000000, 21000000, 1266300000, 1287300000, 31000000, 30000000, 83886080, 943718400),
    (2, 1, 0, 11, 1774744263000000000, 1774744265000000000, 3, 6, 2, 1, 10, 0, 64, 2000000,
     20000000, 22000000, 1272600000, 1294600000, 31000000, 30000000, 83886080, 943718400),
    (3, 1, 0, 12, 1774744264000000000, 1774744266000000000, 3, 6, 3, 1, 11, 0, 64, 3000000,
     20000000, 23000000, 1278900000, 1301900000, 31000000, 30000000, 83886080, 943718400),
    (4, 1, 0, 13, 1774744265000000000, 1774744267000000000, 3, 6, 4, 1, 12, 0, 64, 4000000,
     20000000, 24000000, 1285200000, 1309200000, 31000000, 30000000, 83886080, 943718400),
    (5, 2, 0, 11, 1774744385000000000, 1774744387000000000, 4, 5, 1, 1, 9, 0, 1, 1000000,
     20000000, 21000000, NULL, 21000000, NULL, NULL, 83886080, NULL),
    (6, 2, 0, 12, 1774744386000000000, 1774744388000000000, 4, 5, 2, 3, 10, 0, 0, 2000000,
     20000000, NULL, NULL, 22000000, NULL, NULL, 83886080, NULL),
    (7, 3, 0, 1, 1774751400000000000, 1774751402000000000, 3, 6, 7, 1, 15, 0, 32, 7000000,
     20000000, 27000000, 641700000, 668700000, 31000000, 30000000, 83886080, 943718400);

UPDATE inference SET error = 'a prompt of 90 tokens does not fit a context of 64' WHERE id = 6;

INSERT INTO operation(id, run, stream, number, started_ns, received_ns, operation, duration_ns,
    items, extra) VALUES
    (1, 1, 0, 14, 1774744270000000000, 1774744272000000000, 12, 250000, 500, NULL),
    (2, 2, 0, 13, 1774744387000000000, 1774744389000000000, 12, 250000, NULL,
     '{"why": "warm-up"}');
UPDATE operation SET error = 'no merges in ' || char(27) || '[2Jtokenizer.json' WHERE id = 2;

INSERT INTO pipeline(id, run, stream, number, started_ns, received_ns, workload, device, status,
    items, duration_ns, chunk_bytes, pool_size, prefetch, sync, bytes_h2d, copy_busy_ns,
    compute_busy_ns, both_busy_ns, exposed_copy_ns, copy_starved_ns, pool_acquires, pool_waits,
    pool_wait_ns, pool_available_min, pool_available_max, item_p50_ns, item_p95_ns, item_p99_ns,
    unmeasured_chunks, model, batch_items, idle_ns, pool_waits_below_64us,
    pool_waits_below_4096us) VALUES
    (1, 1, 0, 15, 1774744271000000000, 1774744273000000000, 13, 6, 0, 12800, 2000000000,
     8388608, 4, 8, 0, 838860800, 1500000000, 1200000000, 1080000000, 420000000, 10000000,
     200, 3, 6000000, 0, 4, 9000000, 11000000, 14000000, 0, 14, 64, 30000000, 0, 2),
    (2, 1, 0, 16, 1774744275000000000, 1774744277000000000, 13, 6, 0, 12800, 2000000000,
     8388608, 4, 8, 0, 838860800, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
     NULL, NULL, NULL, NULL, 14, NULL, NULL, NULL, NULL);

INSERT INTO process_sample(id, run, stream, number, started_ns, received_ns, cpu_ratio,
    host_memory_bytes) VALUES
    (1, 3, 0, 2, 1774751401000000000, 1774751403000000000, 0.3333333333333333, 89128960);

INSERT INTO device_sample(id, run, stream, number, started_ns, received_ns, device,
    gpu_util_ratio_stored, temperature_celsius) VALUES
    (1, 3, 0, 3, 1774751401000000000, 1774751403000000000, 6, 0.87, 61.0);

INSERT INTO itl(id, run, stream, number, started_ns, received_ns, model, device, duration_ns,
    sketch) VALUES
    (1, 3, 0, 4, 1774751401000000000, 1774751403000000000, 3, 6, 1000000000, x'0001feff');

INSERT INTO stream(run, stream, next, produced, unnumbered) VALUES
    (1, 0, 17, 16, 0),
    (2, 0, 19, 18, 2),
    (3, 0, 5, 8, 0);

INSERT INTO "range"(run, stream, first, last, state, reason, detail, since_ns, until_ns) VALUES
    (1, 0, 1, 16, 0, NULL, NULL, NULL, NULL),
    (2, 0, 1, 13, 0, NULL, NULL, NULL, NULL),
    (2, 0, 14, 18, 1, 1, 'spool full', 1774744200000000000, 1774744200001000000),
    (3, 0, 1, 4, 0, NULL, NULL, NULL, NULL);

INSERT INTO ledger(run, kind, stored) VALUES
    (1, 1, 1),
    (1, 2, 1),
    (1, 3, 1),
    (1, 4, 1),
    (1, 5, 5),
    (1, 6, 4),
    (1, 8, 1),
    (1, 9, 2),
    (2, 1, 1),
    (2, 2, 1),
    (2, 3, 1),
    (2, 4, 2),
    (2, 5, 5),
    (2, 6, 2),
    (2, 8, 1),
    (3, 6, 1),
    (3, 7, 1),
    (3, 10, 1),
    (3, 11, 1);

-- What each run has named: all that its records have.
INSERT INTO run_name(run, number, name) VALUES
    (1, 3, 3),
    (3, 3, 3),
    (2, 4, 4),
    (2, 5, 5),
    (1, 6, 6),
    (3, 6, 6),
    (1, 7, 7),
    (2, 7, 7),
    (1, 8, 8),
    (2, 8, 8),
    (1, 9, 9),
    (2, 9, 9),
    (1, 10, 10),
    (2, 10, 10),
    (1, 11, 11),
    (2, 11, 11),
    (1, 12, 12),
    (2, 12, 12),
    (1, 13, 13),
    (1, 14, 14);

INSERT INTO refusal(reason, count, last_ns) VALUES
    ('message_size', 12, 1),
    ('names', 3, 1);

UPDATE meta SET value = '01234567-89ab-4cde-8f01-23456789abcd' WHERE key = 'store';
