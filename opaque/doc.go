// Package opaque turns IDs into numbers that tell nothing, and back.
//
// An ID of Leaf says how many there were before it, or when it was made. A competitor who
// orders twice, a week apart, can subtract the two. An opaque ID is the same ID, permuted
// with a secret key: a number of the same size, without order, that only a holder of the
// key can turn back. Nothing is stored, and no two IDs of a tag become one.
//
// # What it promises
//
//  1. Encode is a bijection of [0, 2^d) for each key and tag, where d is Bits less
//     VersionBits. Different IDs have different opaque IDs, and Decode(Encode(id)) is id.
//  2. An opaque ID is in [0, 2^Bits): with 63 bits a positive int64, with 53 bits exact in
//     JavaScript.
//  3. The same ID of two tags has two unrelated opaque IDs, because each tag has a key of
//     its own, derived from the secret.
//  4. The highest VersionBits bits name the key. So a [Ring] with a new key still decodes
//     what older keys have encoded, and no two keys ever make the same opaque ID.
//  5. A [Permutation] is safe for concurrent use and allocates nothing.
//
// # The construction
//
// FF1 of NIST Special Publication 800-38G, with radix 2, an empty tweak and AES-256: a
// Feistel network of ten rounds. The key of a tag is HKDF-SHA256 of the secret (RFC 5869).
//
// # What it does not do
//
//   - It does not authenticate: every number below 2^Bits with a known version decodes to
//     some ID. Look whether the decoded ID exists, and whether the caller may see it.
//   - It keeps no two tags apart: opaque IDs of two tags can be equal, and so can an opaque ID and a number.
//   - It hides neither that two opaque IDs are equal nor which key made them.
//   - It does not last for ever against one who collects pairs of ID and opaque ID. The published attacks
//     on FF1 gain from small domains: NIST asks for at least 1,000,000 values. Here there are
//     2^45 or more.
package opaque
