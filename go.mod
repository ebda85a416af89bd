module github.com/leaf-idgen/leaf

go 1.26.0

require (
	filippo.io/edwards25519 v1.2.0 
	github.com/alecthomas/kong v1.17.0 
	github.com/dustin/go-humanize v1.0.1 
	github.com/go-sql-driver/mysql v1.10.1 
	github.com/google/go-cmp v0.7.0 
	github.com/google/uuid v1.6.0 
	github.com/jackc/pgpassfile v1.0.0 
	github.com/jackc/pgservicefile v0.0.0-20240606120523-5a60cdf6a761 
	github.com/jackc/pgx/v5 v5.12.0 
	github.com/mattn/go-isatty v0.0.24 
	github.com/ncruces/go-strftime v1.0.0 
	github.com/remyoudompheng/bigfft v0.0.0-20230129092748-24d4a6f8daec 
	github.com/rogpeppe/go-internal v1.16.0 
	go.uber.org/goleak v1.3.0 
	go.yaml.in/yaml/v3 v3.0.6 
	golang.org/x/sys v0.48.0 
	golang.org/x/text v0.41.0 
	modernc.org/libc v1.77.1 
	modernc.org/mathutil v1.7.1 
	modernc.org/memory v1.12.1 
	modernc.org/sqlite v1.60.1 
	pgregory.net/rapid v1.3.0 
)
