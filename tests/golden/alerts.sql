-- Alerts of every state, with names and texts that a terminal must not see as they are.
INSERT INTO alert(id, rule, model, host, device, state, severity, started_ns, firing_ns,
  resolved_ns, value, threshold, unit, why, acknowledged_ns, acknowledged_by, acknowledged_text,
  is_told, was_lost, stepped_ns, held_ns, critical_held_ns, good_ns, lost_ns) VALUES
 (1, 'slow_first_token', 'llama', 'gpu01', NULL, 2, 1, 1774785600000000000, 1774785720000000000,
  NULL, 4712345678, 4500000000, 'ns', 'longer prompts: +2.1s of 2.9s', NULL, NULL, NULL, 1, 0, 0, 0,
  0, -1, 0),
 (2, 'slow_tokens', 'llama', 'gpu' || char(27) || '[31m02' || char(10), NULL, 2, 0,
  1774785600000000000, 1774785660000000000, NULL, 8.25, 10, 'tokens/s', NULL, 1774785700000000000,
  'user 1000', 'it''s "mine"' || char(27) || ']0;x', 1, 0, 0, 0, 0, -1, 0),
 (3, 'host_memory', NULL, 'gpu03', NULL, 3, 0, 1774785600000000000, 1774785680000000000, NULL,
  0.934, 0.9, 'ratio', NULL, NULL, NULL, NULL, 1, 1, 0, 0, 0, -1, 0),
 (4, 'device_hot', NULL, 'gpu01', 'cuda:1', 1, 0, 1774785790000000000, NULL, NULL, 2.5, 3,
  'celsius', NULL, NULL, NULL, NULL, 0, 0, 0, 0, 0, -1, 0),
 (5, 'slow_load', 'llama', 'gpu01', NULL, 4, 0, 1774780000000000000, 1774780000000000000,
  1774781000000000000, 12000000000, 30000000000, 'ns', NULL, NULL, NULL, NULL, 1, 0, 0, 0, 0, 0, 0),
 (6, 'device_hot', NULL, 'gpu07', 'cuda:0', 2, 1, 1774785500000000000, 1774785500000000000, NULL, 1,
  3, 'celsius', NULL, NULL, NULL, NULL, 1, 0, 0, 0, 0, -1, 0);
INSERT INTO alert_silence VALUES
 (1, 'host_memory', NULL, 'gpu03', NULL, 1000000000, 4000000000000000000, 'user 1000',
  'new memory' || char(10) || 'comes'),
 (2, NULL, NULL, 'gpu03', NULL, 1000000000, 1000000001, 'user 1000', 'over'),
 (3, NULL, NULL, 'gpu07', NULL, 1000000000, 4000000000000000000, 'user 1000', 'planned');
INSERT INTO alert_config VALUES ('rule', 'slow_tokens', 1774785700000000000,
  'store: no such table' || char(10) || ': x', 0), ('rule', 'device_hot', NULL, NULL, 0),
 ('hook', 'pager', 1774785790000000000, 'the answer has the code 404', 2),
 ('hook', 'log', NULL, NULL, 0),
 ('file', '', 1774785600000000000, 'rules: line 3: column 7: the name is missing', 0);
INSERT INTO alert_delivery VALUES
 (1, 1, 'pager', 'firing', 1774785800000000000, 3, 'no answer', 1774785720000000000),
 (2, 1, 'log', 'firing', 1774785800000000000, 0, NULL, 1774785720000000000);
INSERT INTO meta VALUES ('rule:slow_tokens',
  'avg tokens_per_second by host over 5m when p50 < 10t/s' || char(27) || '[31m'),
 ('rule:device_hot', 'avg slowdown_margin_celsius over 1m when min < 3C for 1m clear 5C');
