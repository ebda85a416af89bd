package config

import (
	"fmt"
	"net/url"
	"strings"
)

// jdbcDialect is one Java driver.
type jdbcDialect struct {
	scheme string // of our store URL
	port   string // its default
	// Names in lower case, because the drivers do not mind the case.
	take map[string]bool // parameters that translate looks at
	drop map[string]bool // parameters that only concern the Java driver
	// translate writes what the parameters in take mean to out.
	translate func(given map[string]string, out url.Values) error
}

func set(names string) map[string]bool {
	m := map[string]bool{}
	for n := range strings.FieldsSeq(strings.ToLower(names)) {
		m[n] = true
	}
	return m
}

var mysqlJDBC = jdbcDialect{
	scheme:    "mysql",
	port:      "3306",
	take:      set("sslMode useSSL requireSSL verifyServerCertificate trustServerCertificate"),
	translate: mysqlTLS,
	drop: set(`useUnicode characterEncoding characterSetResults connectionCollation
		serverTimezone connectionTimeZone forceConnectionTimeZoneToSession useTimezone useLegacyDatetimeCode useJDBCCompliantTimezoneShift
		autoReconnect autoReconnectForPools failOverReadOnly maxReconnects initialTimeout secondsBeforeRetryMaster
		connectTimeout socketTimeout tcpKeepAlive tcpNoDelay
		zeroDateTimeBehavior allowMultiQueries allowPublicKeyRetrieval allowLoadLocalInfile rewriteBatchedStatements
		useServerPrepStmts cachePrepStmts prepStmtCacheSize prepStmtCacheSqlLimit cacheServerConfiguration cacheResultSetMetadata
		elideSetAutoCommits maintainTimeStats useLocalSessionState useLocalTransactionState useCursorFetch defaultFetchSize
		tinyInt1isBit transformedBitIsBoolean yearIsDateType noDatetimeStringSync nullCatalogMeansCurrent nullNamePatternMatchesAll
		useInformationSchema noAccessToProcedureBodies useOldAliasMetadataBehavior useAffectedRows useCompression useSSPSCompatibleTimezoneShift
		logger profileSQL dumpQueriesOnException includeInnodbStatusInDeadlockExceptions createDatabaseIfNotExist`),
}

// mysqlTLS follows Connector/J: sslMode wins over the older switches.
func mysqlTLS(given map[string]string, out url.Values) error {
	if mode, isSet := given["sslmode"]; isSet {
		value, known := map[string]string{
			"DISABLED": "false", "DISABLE": "false", "PREFERRED": "preferred",
			"REQUIRED": "skip-verify", "TRUST": "skip-verify",
			"VERIFY_CA": "true", "VERIFY-CA": "true", "VERIFY_IDENTITY": "true", "VERIFY-FULL": "true",
		}[strings.ToUpper(mode)]
		if !known {
			return fmt.Errorf("parameter sslMode has the unknown value %q", mode)
		}
		out.Set("tls", value)
		return nil
	}
	use, isSet := given["usessl"]
	switch {
	case !isSet && given["requiressl"] != "true":
	case isSet && use != "true":
		out.Set("tls", "false")
	case given["verifyservercertificate"] == "false" || given["trustservercertificate"] == "true":
		out.Set("tls", "skip-verify")
	default:
		out.Set("tls", "true")
	}
	return nil
}

var postgresJDBC = jdbcDialect{
	scheme:    "postgres",
	port:      "5432",
	take:      set("ssl sslmode sslrootcert ApplicationName currentSchema"),
	translate: postgresMeaning,
	drop: set(`stringtype prepareThreshold preparedStatementCacheQueries preparedStatementCacheSizeMiB binaryTransfer
		reWriteBatchedInserts defaultRowFetchSize tcpKeepAlive tcpNoDelay loginTimeout connectTimeout socketTimeout cancelSignalTimeout
		targetServerType assumeMinServerVersion allowEncodingChanges charSet logUnclosedConnections loggerLevel readOnly
		autosave cleanupSavepoints escapeSyntaxCallMode preferQueryMode`),
}

func postgresMeaning(given map[string]string, out url.Values) error {
	if ssl, isSet := given["ssl"]; isSet && ssl != "false" {
		out.Set("sslmode", "verify-full") // as pgjdbc since 42.2.5
	}
	for from, to := range map[string]string{
		"sslmode": "sslmode", "sslrootcert": "sslrootcert", "applicationname": "application_name", "currentschema": "search_path",
	} {
		if v := given[from]; v != "" {
			out.Set(to, v)
		}
	}
	return nil
}

// jdbcParameters is the part of a JDBC URL after the question mark.
type jdbcParameters struct {
	user, password string
	out            url.Values
	notes          []string
}

func (d *jdbcDialect) parameters(query string) (jdbcParameters, error) {
	p := jdbcParameters{out: url.Values{}}
	given := map[string]string{}
	for pair := range strings.SplitSeq(query, "&") {
		if pair == "" {
			continue
		}
		rawName, rawValue, _ := strings.Cut(pair, "=")
		name, err1 := url.QueryUnescape(rawName)
		value, err2 := url.QueryUnescape(rawValue)
		if err1 != nil || err2 != nil {
			return p, fmt.Errorf("parameter %q has a broken %% escape", rawName)
		}
		lower := strings.ToLower(name)
		if _, twice := given[lower]; twice {
			return p, fmt.Errorf("parameter %s is given twice", name)
		}
		given[lower] = value
		switch {
		case lower == "user":
			p.user = value
		case lower == "password":
			p.password = value
		case d.take[lower]: // translated together, below
		case d.drop[lower]:
			p.notes = append(p.notes, "has the parameter "+name+", which only concerns the Java driver and is dropped")
		default:
			return p, fmt.Errorf("parameter %s is not known, and may lead to another database or schema", name)
		}
	}
	return p, d.translate(given, p.out)
}
