// Package format writes IDs as a client asks for them, in the same words on every protocol:
//
//	number             the ID itself, as without a format
//	text               as the template of the tag says (package number)
//	opaque             its opaque ID (package opaque) in decimal
//	opaque-base62      the same in 11 letters and digits
//	opaque-crockford   the same in 13 digits and capital letters
//
// A server asks [Formats] for the [Format] of a request before it takes an ID, so a wrong word takes
// none. It then checks the IDs with [Format.Check] before it writes the first of them, so a reply
// has all its IDs or is an error.
//
// The tag of an opaque ID is the tag of the request in segment mode. In snowflake mode it is always
// [SnowflakeTag], whatever key the request has, so a program can decode an ID without that key.
//
// Opaque IDs of this package are distinct as long as all rings are: [Keys.Replace] refuses a ring
// that would encode two IDs as one opaque ID, also after a restart if the node keeps [Seen].
package format
