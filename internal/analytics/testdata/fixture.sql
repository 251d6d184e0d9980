-- Five conversations in three days, small enough to know every answer by heart.
INSERT INTO sessions (id, day, title, kind, source, source_id, project, directory, model, window, parent_id, parent_kind,
                      head_id, last_seq, compaction_id, message_count, total_tokens, context_tokens, compaction_count,
                      input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, cost_nanousd, unpriced_calls,
                      key, generation, created_at, updated_at, active_at, ended_at, end_reason, metadata) VALUES
('20260209_001', '2026-02-09', 'The migration', 'chat', 'sessiond', '', '/home/u/shop', '/home/u/shop', 'gpt-y', 2000, '', '',
 6, 6, 1, 6, 60, 1200, 2, 3900, 220, 1500, 500, 2506000000, 1,
 'agent:main:main', 1, '2026-02-09 09:00:00.000', '2026-02-10 10:01:00.000', '2026-02-10 10:01:00.000', NULL, '', '{"user_id":"user_123"}'),
('20260210_001', '2026-02-10', 'The build', 'chat', 'pi', 'abc', '/home/u/shop', '/home/u/shop', 'gpt-x', NULL, '', '',
 10, 4, NULL, 4, 40, 40, 0, 300, 60, 0, 0, 250000000, 0,
 'agent:main:main', 2, '2026-02-10 11:00:00.000', '2026-02-10 11:03:00.000', '2026-02-10 11:03:00.000', '2026-02-11 04:00:00.000', 'daily', '{}'),
('20260210_002', '2026-02-10', 'Look it up', 'subagent', 'sessiond', '', '/home/u/shop', '/home/u/shop', 'gpt-x', NULL, '20260209_001', 'child',
 12, 2, NULL, 2, 15, 15, 0, 400, 20, 0, 0, 100000000, 0,
 '', 0, '2026-02-10 10:00:10.000', '2026-02-10 10:00:20.000', '2026-02-10 10:00:10.000', NULL, '', '{}'),
('20260211_001', '2026-02-11', 'The migration (fork #2)', 'chat', 'sessiond', '', '/home/u/shop', '/home/u/shop', 'gpt-x', NULL, '20260209_001', 'fork',
 16, 3, NULL, 3, 28, 65, 0, 100, 10, 400, 0, 50000000, 0,
 '', 0, '2026-02-11 08:00:00.000', '2026-02-11 08:00:09.000', '2026-02-11 08:00:09.000', NULL, '', '{}'),
('20260211_002', '2026-02-11', 'Anyone', 'chat', 'claude-code', 'def', '/home/u/site', '/home/u/site', 'gpt-z', NULL, '', '',
 15, 1, NULL, 1, 9000, 9000, 0, 0, 0, 0, 0, NULL, 0,
 '', 0, '2026-02-11 20:00:00.000', '2026-02-11 20:00:00.000', '2026-02-11 20:00:00.000', NULL, '', '{"tags":["late"]}');

INSERT INTO messages (id, session_id, seq, parent_id, jump, depth, role, origin, finish, tokens, path_tokens, model, day, created_at) VALUES
(1,  '20260209_001', 1, NULL, 0, 0, 'user',      'person',  '',           8,    8,    '',      '2026-02-09', '2026-02-09 09:00:00.000'),
(2,  '20260209_001', 2, 1,    0, 1, 'assistant', 'model',   'tool_calls', 20,   28,   'gpt-x', '2026-02-09', '2026-02-09 09:00:05.000'),
(3,  '20260209_001', 3, 2,    0, 2, 'tool',      'tool',    '',           10,   38,   '',      '2026-02-09', '2026-02-09 09:00:06.000'),
(4,  '20260209_001', 4, 3,    0, 3, 'assistant', 'model',   'stop',       9,    47,   'gpt-x', '2026-02-09', '2026-02-09 09:00:10.000'),
(5,  '20260209_001', 5, 4,    0, 4, 'user',      'person',  '',           7,    54,   '',      '2026-02-10', '2026-02-10 10:00:00.000'),
(6,  '20260209_001', 6, 5,    0, 5, 'assistant', 'model',   'stop',       6,    60,   'gpt-y', '2026-02-10', '2026-02-10 10:01:00.000'),
(7,  '20260210_001', 1, NULL, 0, 0, 'user',      'person',  '',           5,    5,    '',      '2026-02-10', '2026-02-10 11:00:00.000'),
(8,  '20260210_001', 2, 7,    0, 1, 'assistant', 'model',   'tool_calls', 20,   25,   'gpt-x', '2026-02-10', '2026-02-10 11:01:00.000'),
(9,  '20260210_001', 3, 8,    0, 2, 'tool',      'tool',    '',           15,   40,   '',      '2026-02-10', '2026-02-10 11:02:00.000'),
(10, '20260210_001', 4, 9,    0, 3, 'assistant', 'model',   'error',      0,    40,   'gpt-x', '2026-02-10', '2026-02-10 11:03:00.000'),
(11, '20260210_002', 1, NULL, 0, 0, 'user',      'program', '',           6,    6,    '',      '2026-02-10', '2026-02-10 10:00:10.000'),
(12, '20260210_002', 2, 11,   0, 1, 'assistant', 'model',   'stop',       9,    15,   'gpt-x', '2026-02-10', '2026-02-10 10:00:20.000'),
(13, '20260211_001', 1, 4,    1, 4, 'user',      'person',  '',           8,    55,   '',      '2026-02-11', '2026-02-11 08:00:00.000'),
(14, '20260211_001', 2, 13,   0, 5, 'assistant', 'model',   'stop',       10,   65,   'gpt-x', '2026-02-11', '2026-02-11 08:00:05.000'),
(15, '20260211_002', 1, NULL, 0, 0, 'user',      'person',  '',           9000, 9000, '',      '2026-02-11', '2026-02-11 20:00:00.000'),
(16, '20260211_001', 3, 13,   1, 5, 'assistant', 'model',   'stop',       10,   65,   'gpt-x', '2026-02-11', '2026-02-11 08:00:09.000');

INSERT INTO blobs (sha256, size, media_type, data)
VALUES (replace(hex(zeroblob(32)), '0', 'a'), 70000, 'text/plain; charset=utf-8', CAST(replace(hex(zeroblob(35000)), '0', 'a') AS BLOB));

INSERT INTO parts (id, message_id, idx, kind, text, tool_name, call_id, call_part_id, arguments, is_error, duration_ms, blob, tokens) VALUES
(1 << 10,        1,  0, 'text',        'How do I write the migration?', '', '', NULL, '', NULL, NULL, NULL, 8),
(2 << 10,        2,  0, 'text',        'Let me look.', '', '', NULL, '', NULL, NULL, NULL, 5),
((2 << 10) + 1,  2,  1, 'tool_call',   '', 'read', 'c1', NULL, '{"path": "internal/store.go"}', NULL, NULL, NULL, 15),
(3 << 10,        3,  0, 'tool_result', 'package store', 'read', 'c1', (2 << 10) + 1, '', 0, 120, NULL, 10),
(4 << 10,        4,  0, 'text',        'Use a numbered file.', '', '', NULL, '', NULL, NULL, NULL, 9),
(5 << 10,        5,  0, 'text',        'And the Migration test?', '', '', NULL, '', NULL, NULL, NULL, 7),
(6 << 10,        6,  0, 'text',        'Run it twice.', '', '', NULL, '', NULL, NULL, NULL, 6),
(7 << 10,        7,  0, 'text',        'Fix the build', '', '', NULL, '', NULL, NULL, NULL, 5),
(8 << 10,        8,  0, 'tool_call',   '', 'bash', 'c2', NULL, '{"cmd":"make"}', NULL, NULL, NULL, 7),
((8 << 10) + 1,  8,  1, 'tool_call',   '', 'bash', 'c3', NULL, '{"cmd":"make"}', NULL, NULL, NULL, 7),
((8 << 10) + 2,  8,  2, 'tool_call',   '', 'bash', 'c4', NULL, '{"cmd":"make"}', NULL, NULL, NULL, 6),
(9 << 10,        9,  0, 'tool_result', 'no rule', 'bash', 'c2', 8 << 10, '', 1, 500, NULL, 8),
((9 << 10) + 1,  9,  1, 'tool_result', 'no rule', 'bash', 'c3', (8 << 10) + 1, '', 1, 700, NULL, 7),
(11 << 10,       11, 0, 'text',        'Look up the docs', '', '', NULL, '', NULL, NULL, NULL, 6),
(12 << 10,       12, 0, 'text',        'Found.', '', '', NULL, '', NULL, NULL, NULL, 9),
(13 << 10,       13, 0, 'text',        'Or with a flag?', '', '', NULL, '', NULL, NULL, NULL, 8),
(14 << 10,       14, 0, 'text',        'A flag works, too.', '', '', NULL, '', NULL, NULL, NULL, 10),
(16 << 10,       16, 0, 'text',        'Better without one.', '', '', NULL, '', NULL, NULL, NULL, 10),
(15 << 10,       15, 0, 'text',        'Anyone there? Größe!', '', '', NULL, '', NULL, NULL, NULL, 9),
((15 << 10) + 1, 15, 1, 'text',        '', '', '', NULL, '', NULL, NULL, replace(hex(zeroblob(32)), '0', 'a'), 8991);

INSERT INTO compactions (id, session_id, strategy, trigger, status, reason, through_id, first_kept_id, hidden_tokens, summary_tokens,
                         summary, tokens_before, tokens_after, message_count, model, duration_ms, created_at, activated_at) VALUES
(1, '20260209_001', 'summarize', 'manual',    'done',   '', 4, 5, 47, 12, 'A migration is a numbered file.', 5000, 1200, 4, 'gpt-mini', 800, '2026-02-10 09:59:00.000', '2026-02-10 09:59:01.000'),
(2, '20260210_001', 'summarize', 'threshold', 'failed', 'overloaded', NULL, NULL, 0, 0, '', 0, 0, 0, 'gpt-mini', 90, '2026-02-10 11:02:30.000', NULL),
(3, '20260209_001', 'prune',     'threshold', 'done',   '', 3, NULL, 38, 0, '', 300, 200, 1, '', 1, '2026-02-10 10:00:30.000', '2026-02-10 10:00:30.000');
INSERT INTO compaction_undos VALUES ('20260209_001', 3, '2026-02-10 10:00:40.000');

INSERT INTO contexts (id, session_id, head_id, compaction_id, epoch, model, dialect, tokens, created_at)
VALUES (1, '20260209_001', 1, NULL, 1, 'gpt-x', 'openai.chat', 1450, '2026-02-09 09:00:01.000');

INSERT INTO calls (id, session_id, message_id, compaction_id, context_id, purpose, status, error, provider, model, source, day,
                   input_tokens, cache_read_tokens, cache_write_tokens, output_tokens, reasoning_tokens, cost_nanousd, price_source, latency_ms, created_at) VALUES
(1, '20260209_001', 2,    NULL, 1,    'chat',    'ok',     '',           'openai', 'gpt-x',    'sessiond', '2026-02-09', 1000, 0,    500, 50,  0,  2000000000, 'catalogue', 900,  '2026-02-09 09:00:05.000'),
(2, '20260209_001', 4,    NULL, NULL, 'chat',    'ok',     '',           'openai', 'gpt-x',    'sessiond', '2026-02-09', 100,  1500, 0,   40,  0,  500000000,  'reported',  1100, '2026-02-09 09:00:10.000'),
(3, '20260209_001', 6,    NULL, NULL, 'chat',    'ok',     '',           'openai', 'gpt-y',    'sessiond', '2026-02-10', 2000, 0,    0,   30,  10, NULL,       '',          NULL, '2026-02-10 10:01:00.000'),
(4, '20260210_001', 8,    NULL, NULL, 'chat',    'ok',     '',           'openai', 'gpt-x',    'pi',       '2026-02-10', 300,  0,    0,   60,  0,  250000000,  'reported',  NULL, '2026-02-10 11:01:00.000'),
(5, '20260210_002', 12,   NULL, NULL, 'chat',    'ok',     '',           'openai', 'gpt-x',    'sessiond', '2026-02-10', 400,  0,    0,   20,  0,  100000000,  'catalogue', NULL, '2026-02-10 10:00:20.000'),
(6, '20260209_001', NULL, 1,    NULL, 'summary', 'ok',     '',           'openai', 'gpt-mini', 'sessiond', '2026-02-10', 800,  0,    0,   100, 0,  6000000,    'catalogue', 700,  '2026-02-10 09:59:01.000'),
(7, '20260210_001', NULL, NULL, NULL, 'chat',    'failed', 'overloaded', 'openai', 'gpt-x',    'pi',       '2026-02-10', 0,    0,    0,   0,   0,  0,          'catalogue', 50,   '2026-02-10 11:03:00.000'),
(8, '20260211_001', 14,   NULL, NULL, 'chat',    'ok',     '',           'openai', 'gpt-x',    'sessiond', '2026-02-11', 100,  400,  0,   10,  0,  50000000,   'catalogue', NULL, '2026-02-11 08:00:05.000');

INSERT INTO touched_files VALUES
('/home/u/shop/internal/store.go', 2, 'read', '20260209_001'),
('/home/u/shop/internal/store.go', 8, 'edit', '20260210_001'),
('/home/u/shop/Makefile',          8, 'edit', '20260210_001');
INSERT INTO marks VALUES
('20260209_001', 1, 'pin', '',          '2026-02-10 12:00:00.000', 0, 0),
('20260209_001', 5, 'tag', 'the tests', '2026-02-10 12:00:01.000', 0, 0);
INSERT INTO models VALUES
('gpt-x', 'openai', 'o200k', 2000, 500, '["text"]', 'catalogue', ''),
('gpt-y', 'openai', 'o200k', 4000, 500, '["text"]', 'catalogue', '');
INSERT INTO prices VALUES
('gpt-x', '2025-01-01', '', 0, 2000, 200, 2500, 2500, 8000, 'catalogue'),
('gpt-y', '2025-01-01', '', 0, 2000, 400, 2500, 2500, 8000, 'catalogue'),
('gpt-y', '2026-02-11', '', 0, 9999, 1, 1, 1, 1, 'catalogue');
INSERT INTO calibrations VALUES ('gpt-x', 1.03, 1500, '2026-02-09 09:00:05.000');
INSERT INTO imports (source, path, session_id, size, offset, updated_at)
VALUES ('pi', '/home/u/.pi/abc.jsonl', '20260210_001', 5000, 4000, '2026-02-10 12:00:00.000');

INSERT INTO daily_usage (day, project, source, model, purpose, sessions, subagents, messages, prompts, calls, input_tokens,
                         cache_read_tokens, cache_write_tokens, output_tokens, cost_nanousd, unpriced_calls) VALUES
('2026-02-09', '/home/u/shop', 'sessiond',    '',         '',        1, 0, 4, 1, 0, 0,    0,    0,   0,   0,          0),
('2026-02-09', '/home/u/shop', 'sessiond',    'gpt-x',    'chat',    0, 0, 0, 0, 2, 1100, 1500, 500, 90,  2500000000, 0),
('2026-02-10', '/home/u/shop', 'sessiond',    '',         '',        1, 1, 4, 1, 0, 0,    0,    0,   0,   0,          0),
('2026-02-10', '/home/u/shop', 'sessiond',    'gpt-x',    'chat',    0, 0, 0, 0, 1, 400,  0,    0,   20,  100000000,  0),
('2026-02-10', '/home/u/shop', 'sessiond',    'gpt-y',    'chat',    0, 0, 0, 0, 1, 2000, 0,    0,   30,  0,          1),
('2026-02-10', '/home/u/shop', 'sessiond',    'gpt-mini', 'summary', 0, 0, 0, 0, 1, 800,  0,    0,   100, 6000000,    0),
('2026-02-10', '/home/u/shop', 'pi',          '',         '',        1, 0, 4, 1, 0, 0,    0,    0,   0,   0,          0),
('2026-02-10', '/home/u/shop', 'pi',          'gpt-x',    'chat',    0, 0, 0, 0, 2, 300,  0,    0,   60,  250000000,  0),
('2026-02-11', '/home/u/shop', 'sessiond',    '',         '',        1, 0, 3, 1, 0, 0,    0,    0,   0,   0,          0),
('2026-02-11', '/home/u/shop', 'sessiond',    'gpt-x',    'chat',    0, 0, 0, 0, 1, 100,  400,  0,   10,  50000000,   0),
('2026-02-11', '/home/u/site', 'claude-code', '',         '',        1, 0, 1, 1, 0, 0,    0,    0,   0,   0,          0);
