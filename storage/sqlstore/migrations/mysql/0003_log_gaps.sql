-- Numbers of events that were never given: see events in docs/storage.md.
CREATE TABLE IF NOT EXISTS {p}gaps (
  first_seq BIGINT PRIMARY KEY,
  after_seq BIGINT NOT NULL
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
