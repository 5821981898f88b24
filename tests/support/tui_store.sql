-- A store whose every figure is known, long ago: two hosts, three runs, one of
-- which was killed and has lost records.  Goes into an empty store.
insert into name(id, text) values
  (101, 'gpu-17'), (102, 'gpu-18'), (103, 'synthetic-15m'), (104, 'cpu'),
  (105, 'device_selection'), (106, 'file_opening'), (107, 'read_header'),
  (108, 'tokenizer_init'), (109, 'model_building'), (110, 'tiny'),
  (111, 'NVIDIA H200'), (112, 'encode'), (113, 'model_load'),
  (114, 'iqp 16 qubits f64');

insert into run(run, started_ns, received_ns, uuid, host, pid, ended_ns, "end", last_activity,
                worker_version, protocol, os, kernel, cpu, cpu_count, host_memory_bytes,
                device_count, produced, stored, duplicates, heard_ns)
values
  (1, 1774785000000000000, 1774785000100000000, '5f0c2f6e-9a51-4c6c-8a4e-0d8f6b2f1a77', 101, 4711,
   1774785600000000000, 1, null, '0.1.0', 1, 'os', 'kernel', 'cpu', 8, 34359738368, 1, 49, 49, 0,
   1774785600000000000),
  (2, 1774785100000000000, 1774785100100000000, 'a0a42f1c-1f5e-4f43-9dc6-3a8d5c1f0b02', 102, 512,
   1774785500000000000, 2, 'decode', '0.1.0', 1, 'os', 'kernel', 'cpu', 8, 34359738368, 1, 20, 8, 2,
   1774785500000000000);

insert into stream(run, stream, next, produced, unnumbered) values
  (1, 1, 50, 49, 0), (2, 1, 21, 20, 3);
insert into range(run, stream, first, last, state, reason) values
  (1, 1, 1, 49, 0, null), (2, 1, 1, 8, 0, null), (2, 1, 9, 20, 1, 2);

insert into load(run, stream, number, started_ns, received_ns, model, device, duration_ns, status,
                 model_bytes, host_memory_before_bytes, host_memory_after_bytes, page_cache_ratio)
values (1, 1, 1, 1774785001000000000, 1774785003000000000, 103, 104, 1200000000, 0, 60922880,
        8388608, 72351744, 1.0);
insert into load_stage(run, stream, number, started_ns, received_ns, parent, ordinal, stage,
                       duration_ns)
values
  (1, 1, 2, 1774785001000000000, 1774785003000000000, 1, 0, 105, 1400000),
  (1, 1, 3, 1774785001001500000, 1774785003000000000, 1, 1, 106, 300000),
  (1, 1, 4, 1774785001001900000, 1774785003000000000, 1, 2, 107, 14600000),
  (1, 1, 5, 1774785001016600000, 1774785003000000000, 1, 3, 108, 122000000),
  (1, 1, 6, 1774785001138700000, 1774785003000000000, 1, 4, 109, 1050000000);

with recursive request(i) as (select 0 union all select i + 1 from request where i < 39)
insert into inference(run, stream, number, started_ns, received_ns, model, device, request,
                      finish, prompt_tokens, cached_prompt_tokens, generated_tokens, queue_ns,
                      prefill_ns, ttft_ns, decode_ns, e2e_ns, itl_max_ns, itl_p99_ns, host_memory_bytes)
select 1, 1, 7 + i, 1774785010000000000 + i * 3000000000, 1774785012000000000 + i * 3000000000,
       103, 104, i + 1, i % 5 = 4, 12 + i % 3, 0, 32, 120000, 29000000 + i % 7 * 100000,
       29120000 + i % 7 * 100000, 600000000 + i % 9 * 50000000,
       629120000 + i % 7 * 100000 + i % 9 * 50000000, 31100000, 26400000, 134217728
from request;

with recursive request(i) as (select 0 union all select i + 1 from request where i < 7)
insert into inference(run, stream, number, started_ns, received_ns, model, device, request,
                      finish, prompt_tokens, cached_prompt_tokens, generated_tokens, queue_ns,
                      prefill_ns, ttft_ns, decode_ns, e2e_ns, itl_max_ns, itl_p99_ns, host_memory_bytes)
select 2, 1, 1 + i, 1774785110000000000 + i * 1000000000, 1774785110500000000 + i * 1000000000,
       110, 111, i + 1, 3 * (i = 7), 100, 0, iif(i = 7, 1, 64), 5000, 2000000, 2005000,
       iif(i = 7, null, 90000000), 92005000, 2100000, 1900000, 2147483648
from request;

-- The weights of a load, on their way; then before and after events.
insert into pipeline(run, stream, number, started_ns, received_ns, workload, device, status,
                     items, duration_ns, chunk_bytes, pool_size, prefetch, sync, bytes_h2d,
                     copy_busy_ns, compute_busy_ns, both_busy_ns, exposed_copy_ns, copy_starved_ns,
                     pool_acquires, pool_waits, pool_wait_ns, pool_available_min,
                     pool_available_max, item_p50_ns, item_p95_ns, item_p99_ns, unmeasured_chunks,
                     model, batch_items)
values
  (1, 1, 47, 1774785001100000000, 1774785003100000000, 113, 104, 0, 15, 1050000000, 4194304, 2, 2, 0,
   60922880, 900000000, 0, 0, 900000000, 31000000, 15, 6, 95000000, 0, 2, null, null, null, 0, 103,
   null),
  (1, 1, 48, 1774785200000000000, 1774785202000000000, 112, 104, 0, 12800, 3100000000, 8388608, 4, 4, 1,
   838860800, 1500000000, 1600000000, 474000000, 1026000000, 402000000, 100, 43, 210000000, 0, 4,
   1900000, 3100000, 4100000, 0, 114, 64),
  (1, 1, 49, 1774785300000000000, 1774785302000000000, 112, 104, 0, 12800, 2000000000, 8388608, 4, 4, 0,
   838860800, 1500000000, 1600000000, 1458000000, 42000000, 10000000, 100, 2, 6000000, 0, 4,
   1200000, 1500000, 1900000, 0, 114, 64);

insert into ledger(run, kind, stored) values (1, 4, 1), (1, 5, 5), (1, 6, 40), (1, 9, 3), (2, 6, 8);
