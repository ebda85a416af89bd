// Package masters issues the IDs of tags that live in several databases at once. The databases know nothing of each
// other, and nothing is copied between them.
//
// In each database the tag has a part, an ordinary row with a step, a fence, a latch and a repair of its own
// ([segment.Masters]). The engine below ([Engine]) knows parts only. [Issuer] does two things: it maps the numbers of
// a part to IDs of the tag, and it chooses the part. It keeps no ID and no range, so what the engine promises of a part
// holds for the tag: a number that no node gets twice is an ID that no node gets twice.
//
// # Which part
//
// The parts of a tag have an order, the nearest database first. A call takes from the nearest part that it does not
// avoid:
//
//  1. While that part has IDs in memory, the call takes them. It waits for nothing, and looks at no clock.
//  2. Otherwise the call waits for a load, for [Config.Patience] at most, and less if its own deadline is near. When
//     the part gives nothing in that time, or refuses, this node avoids the part for this tag, and the call goes on to the
//     next part.
//  3. When it has been at all parts, the call waits for each of them in turn, until one gives IDs or its time is over.
//     If none of them lets the call wait, as with latched tags, it ends at once.
//
// A part that is avoided costs later calls nothing: they ask the engine whether the part has IDs in memory again
// ([Engine.Stocked]), and the engine loads a range as soon as the database answers. From then on the calls are back.
//
// A caller whose own deadline was too short says nothing of the part, so the part is not avoided. Nor is it when the
// gate in front forbids the caller to wait (leaf.Admit).
//
// # What it does not do
//
// It promises no order between two parts: while the nearest database is away, the IDs of another part are lower or
// higher. A batch comes from one part. It does not measure which database is near: the configuration says it.
package masters
