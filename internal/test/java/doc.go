// Package java runs HTTP clients of Java programs (RestTemplate, OpenFeign,
// HttpURLConnection, java.net.http, from Maven Central) against a node, and, if
// LEAF_ORIGINAL_JAR names the original's leaf-server.jar, against that server on the
// same table. It needs a JDK of version 17 or later, mvn, and for the second part a
// MySQL or MariaDB server; "make test-matrix" runs it.
package java
