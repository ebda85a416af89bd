// Package problem is how an error travels over HTTP: as a problem+json body
// (RFC 9457) with the members type, title, status, code, detail and retryable, and
// retry_after_ms where the error says when to try again.
//
// It promises:
//
//  1. Status, code, title and retryable come from the one table in package leaf
//     ([leaf.ClassOf]); the three problems that only HTTP knows (no such route,
//     method not allowed, too many connections) are the functions of this package.
//  2. An error that no row of the table knows never leaves the process: it is
//     logged, and the caller reads a generic text.
//  3. What [Write] sent, [Read] restores: errors.Is finds the same sentinel, the
//     text is the same, and so is leaf.RetryAfter, in ms and rounded up.
//  4. A reply that a retry can cure (503, 429) carries Retry-After, in seconds and
//     rounded up; a 401 carries WWW-Authenticate; no reply may be cached.
//
// It does not decide which errors occur and it does not negotiate content types:
// an error is problem+json whatever the request's Accept field says.
package problem
