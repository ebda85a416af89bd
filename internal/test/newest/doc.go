// Package newest unpacks the newest servers that Debian has (its suite "unstable") into
// a folder, beside the older ones of the machine's own release, for the tests of
// drivers. A [Source] is the mirror and the folder; [Source.Programs] returns a folder
// of programs to put in front of PATH.
//
// It promises:
//
//  1. Nothing of the system is changed, and no privilege is needed: apt-get works in
//     folders of its own below [Source.Folder], and no script of a package is run.
//  2. A package is used only if the signed index of the suite has its checksum. apt-get
//     verifies both.
//  3. A program runs on the C library and the libraries that were unpacked with it.
//     Packages that no server needs are not fetched (see assumed).
//  4. Processes that unpack at the same time take turns. A folder of programs has its
//     name only when it is complete, and does not change after that.
//  5. What was unpacked less than a week ago is used without asking the mirror. A mirror
//     that does not answer costs three attempts; then an older copy is used, or the error
//     is [ErrUnavailable] and says what to do.
//
// It does not start servers (package server does), and it does not fetch Java.
package newest
