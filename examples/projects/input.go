package projects

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/headroomhq/headroom/schemas"
)

const longestName = 60

// wrong is a field of a form that cannot be used.
type wrong struct{ field, detail string }

func (e *wrong) Error() string { return e.field + " " + e.detail }

// conflict is something that exists already.
type conflict struct{ detail string }

func (e *conflict) Error() string { return e.detail }

func nameIn(r *http.Request) (string, error) {
	name := strings.TrimSpace(r.PostFormValue("name"))
	if name == "" || utf8.RuneCountInString(name) > longestName || !utf8.ValidString(name) || strings.ContainsRune(name, 0) {
		return "", &wrong{"name", "must have 1 to 60 characters"}
	}
	return name, nil
}

// taken makes a conflict of a row that Postgres found twice.
func taken(err error, name string) error {
	const uniqueViolation = "23505"
	var refused *pgconn.PgError
	if errors.As(err, &refused) && refused.Code == uniqueViolation {
		return &conflict{fmt.Sprintf("%q exists already", name)}
	}
	return err
}

// amount is a limit in words, such as "3 projects" or "10 MB of storage".
func amount(feature string, limit schemas.Limit) string {
	if n, bounded := limit.Value(); bounded {
		return amountOf(feature, n)
	}
	return "unlimited " + nameOf(feature)
}

func amountOf(feature string, n int64) string {
	switch {
	case feature == featureStorage:
		return number(feature, n) + " of storage"
	case n == 1:
		return "1 " + strings.TrimSuffix(nameOf(feature), "s")
	default:
		return number(feature, n) + " " + nameOf(feature)
	}
}

// number is a quantity of a feature.
func number(feature string, n int64) string {
	switch {
	case feature != featureStorage:
		return strconv.FormatInt(n, 10)
	case n < schemas.BytesPerMegabyte:
		return strconv.FormatInt(n/kilobyte, 10) + " KB"
	default:
		megabytes := strconv.FormatFloat(float64(n)/schemas.BytesPerMegabyte, 'f', 1, 64)
		return strings.TrimSuffix(megabytes, ".0") + " MB"
	}
}

func nameOf(feature string) string {
	if feature == featureStorage {
		return "storage"
	}
	return feature
}

func inBytes(megabytes schemas.Limit) schemas.Limit {
	if n, bounded := megabytes.Value(); bounded {
		return schemas.LimitOf(n * schemas.BytesPerMegabyte)
	}
	return schemas.Unlimited
}
