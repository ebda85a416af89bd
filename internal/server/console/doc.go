// Package console is the web page of a node: handlers, sessions, live streams, the samples of
// the last hour, and the files of the page itself, which are written by hand and embedded.
//
// It promises, and its tests check by number:
//
//  1. No request without a valid token gets a fact about the node, where a token is required.
//     A browser exchanges the token once for a random cookie that scripts cannot read; the
//     token is in no URL and in no storage of the browser.
//  2. A session ends with its token: a token that the node no longer accepts ends every
//     session that was opened with it, and the streams of that session.
//  3. A page of another site can neither read nor change anything: each change needs a header
//     that only this page sends, and each request is refused when a browser says that it
//     comes from elsewhere. Without a token, the name in Host must be a loopback address where the
//     listener is on one.
//  4. No data becomes markup or script: replies are JSON, the page makes text nodes only, and
//     the content security policy allows no script but the embedded files.
//  5. IDs and their bounds are strings in JSON, because JavaScript rounds numbers above 2^53.
//  6. Memory and work are bounded: 720 samples, 1,000 sessions, 64 streams, 10 s for a reader to take
//     an event, one walk through the tags for all readers, at most a twentieth of a processor for it.
//  7. A read-only console has no actions, and lets no session through to the administrator's interface.
//
// Actions are requests of the page to the administrator's interface (package admin), which asks [Console.Admits]
// about a request without a token of its own. This package carries out none of them.
//
// It knows no engine, database or registry: a [Source] tells it what to show. It keeps no audit log,
// knows no roles, and does not limit how often a wrong token is tried: a token has 256 bits or is the
// operator's own choice.
package console
