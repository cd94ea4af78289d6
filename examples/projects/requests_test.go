package projects_test

import (
	"net/http"
	"strings"
	"testing"
)

func TestWrongFormsAreRefused(t *testing.T) {
	t.Parallel()
	s := open(t)
	const nobody = "01930000-0000-7000-8000-000000000000"
	for name, test := range map[string]struct {
		path   string
		fields []string
		want   int
	}{
		"a project without a name":        {"/w/acme/projects", []string{"name", "  "}, 422},
		"a name that is too long":         {"/w/acme/projects", []string{"name", strings.Repeat("é", 61)}, 422},
		"a name with a NUL":               {"/w/acme/projects", []string{"name", "a\x00b"}, 422},
		"a name that is no UTF-8":         {"/w/acme/projects", []string{"name", "\xff"}, 422},
		"a body that is too large":        {"/w/acme/projects", []string{"name", strings.Repeat("x", 70_000)}, 413},
		"a workspace that cannot be one":  {"/w/not.one/projects", []string{"name", "x"}, 404},
		"a project that is not there":     {"/w/acme/projects/" + nobody + "/rename", []string{"name", "x"}, 404},
		"a project that cannot be there":  {"/w/acme/projects/-/rename", []string{"name", "x"}, 422},
		"to delete what is not there":     {"/w/acme/projects/" + nobody + "/delete", nil, 404},
		"an address that is none":         {"/w/acme/invitations", []string{"email", "maria"}, 422},
		"nobody's invitation":             {"/w/acme/invitations/accept", []string{"email", "maria@example.com"}, 404},
		"a file without a size":           {"/w/acme/files", []string{"name", "a.zip"}, 422},
		"a file of less than nothing":     {"/w/acme/files", []string{"name", "a.zip", "size_kb", "-1"}, 422},
		"a file beyond all numbers":       {"/w/acme/files", []string{"name", "a.zip", "size_kb", "9223372036854775808"}, 422},
		"a plan that nobody has made":     {"/w/acme/plan", []string{"plan", "gold"}, 422},
		"a form that nobody takes":        {"/w/acme/nothing", nil, 404},
		"to keep more than there will be": {"/w/acme/projects/keep", []string{"keep", "a"}, 422},
	} {
		if got := s.post(t, test.path, test.fields...); got.status != test.want {
			t.Errorf("%s: status %d, want %d: %s", name, got.status, test.want, got.body)
		}
	}
	if n := s.count(t, `SELECT count(*) FROM usage_counters WHERE count > 0`); n != 0 {
		t.Errorf("%d counters have counted", n)
	}
}

func TestAnotherSiteCannotPressTheButtons(t *testing.T) {
	t.Parallel()
	s := open(t)
	for name, header := range map[string]http.Header{
		"as browsers say it":     {"Sec-Fetch-Site": {"cross-site"}},
		"as old browsers say it": {"Origin": {"https://elsewhere.example"}},
	} {
		got := s.send(t, http.MethodPost, "/w/acme/projects", formOf([]string{"name", "x"}), header)
		if got.status != http.StatusForbidden {
			t.Errorf("%s: status %d", name, got.status)
		}
	}
	if n := s.count(t, projectRows, "acme"); n != 0 {
		t.Errorf("%d projects were made", n)
	}
}

func TestWhatCustomersWriteIsText(t *testing.T) {
	t.Parallel()
	s := open(t)
	const name = `<script>alert("x")</script>`
	s.press(t, "/w/acme/projects", "name", name).must(t, http.StatusOK)
	_, source := s.page(t, "acme")
	if strings.Contains(source, "<script") || !strings.Contains(source, "&lt;script&gt;") {
		t.Error("a name is markup in the page")
	}
}

func TestWorkspacesAreApart(t *testing.T) {
	t.Parallel()
	s := open(t)
	id := s.post(t, "/w/acme/projects", "name", "Apollo").must(t, http.StatusCreated).id(t)
	s.post(t, "/w/other/projects/"+id+"/rename", "name", "x").must(t, http.StatusNotFound)
	s.post(t, "/w/other/projects/"+id+"/delete").must(t, http.StatusNotFound)
	text, _ := s.page(t, "other")
	if strings.Contains(text, "Apollo") || !strings.Contains(text, "0 of 3") {
		t.Errorf("the page of another workspace: %s", text)
	}
	first := s.send(t, http.MethodGet, "/", nil, nil).must(t, http.StatusOK)
	if !strings.Contains(textOf(first.body), "1 of 3") {
		t.Errorf("the first page is not acme's: %s", textOf(first.body))
	}
	style := s.send(t, http.MethodGet, "/style.css", nil, nil).must(t, http.StatusOK)
	if style.contentType != "text/css; charset=utf-8" {
		t.Errorf("Content-Type of the stylesheet: %s", style.contentType)
	}
}
