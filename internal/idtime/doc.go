// Package idtime is what the protocols, the console and the commands say about the time in
// IDs of snowflake mode: an ID taken apart, and the IDs that a time has. The layout itself is
// behind [Layout], so that a server knows no engine.
package idtime
