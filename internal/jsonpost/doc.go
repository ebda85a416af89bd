// Package jsonpost posts JSON to a URL that may hold a secret, as those of webhooks and collectors
// do.
//
// What it promises:
//
//  1. No error shows the URL.
//  2. A client of [NewClient] follows no redirect: what is posted, and the secret, go to the
//     configured host only.
//  3. A reply is read as far as a connection needs to be used again, and not further.
//
// What it does not do: it does not try again, and it does not judge the status of a reply.
package jsonpost
