-- Which models have calls without a price, and how many tokens are at stake?
SELECT provider, model, COUNT(*) AS unpriced_calls,
       SUM(input_tokens + cache_read_tokens + cache_write_tokens) AS tokens_in,
       SUM(output_tokens) AS tokens_out, MIN(day) AS first_day, MAX(day) AS last_day
FROM calls
WHERE cost_nanousd IS NULL
GROUP BY provider, model
ORDER BY unpriced_calls DESC, provider, model;
