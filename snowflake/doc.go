// Package snowflake makes 64-bit IDs from a clock, a worker ID and a counter
// (spec section 3). A [Layout] says which bits mean what.
package snowflake
