package redact_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"sessiond/internal/redact"
	"sessiond/internal/session"
)

// Secrets are put together at run time, so that no scanner takes this file for a leak.
func secret(prefix string, n int) string {
	const letters = "aB3dE6gH9jK2mN5pQ8rS"
	var b strings.Builder
	b.WriteString(prefix)
	for i := range n {
		b.WriteByte(letters[(i*7+n)%len(letters)])
	}
	return b.String()
}

func TestMaskKnowsTheShapesOfSecrets(t *testing.T) {
	jwt := "eyJ" + secret("", 20) + ".eyJ" + secret("", 30) + "." + secret("", 43)
	armour := "-----BEGIN RSA PRIVATE KEY-----\nMIIEow" + secret("", 60) + "\n" + secret("", 60) +
		"==\n-----END RSA PRIVATE KEY-----"
	for name, c := range map[string]struct{ secret, kind string }{
		"aws key id":          {"AKIA" + strings.Repeat("Z7", 8), "aws key id"},
		"github classic":      {secret("ghp_", 36), "github token"},
		"github fine":         {secret("github_pat_", 60), "github token"},
		"github server":       {secret("ghs_", 36), "github token"},
		"gitlab":              {secret("glpat-", 20), "gitlab token"},
		"openai":              {secret("sk-", 48), "openai key"},
		"openai project":      {secret("sk-proj-", 60), "openai key"},
		"anthropic":           {secret("sk-ant-api03-", 60), "anthropic key"},
		"google":              {secret("AIza", 35), "google api key"},
		"slack":               {secret("xoxb-", 40), "slack token"},
		"slack webhook":       {secret("hooks.slack.com/services/", 40), "slack webhook"},
		"stripe":              {secret("sk_live_", 24), "stripe key"},
		"stripe restricted":   {secret("rk_test_", 24), "stripe key"},
		"npm":                 {secret("npm_", 36), "npm token"},
		"hugging face":        {secret("hf_", 34), "hugging face token"},
		"pypi":                {secret("pypi-", 80), "pypi token"},
		"pypi, cut":           {"pypi-AgEIcHlwaS5vcmc", "pypi token"},
		"pypi, short":         {secret("pypi-", 24), "pypi token"},
		"sendgrid":            {secret("SG.", 60), "sendgrid key"},
		"replicate":           {secret("r8_", 37), "replicate token"},
		"doppler":             {secret("dp.pt.", 43), "doppler token"},
		"databricks":          {secret("dapi", 32), "databricks token"},
		"figma":               {secret("figd_", 40), "figma token"},
		"sentry":              {secret("sntrys_", 80), "sentry token"},
		"jwt":                 {jwt, "jwt"},
		"private key":         {armour, "private key"},
		"private key as JSON": {strings.ReplaceAll(armour, "\n", `\n`), "private key"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, around := range []string{
				"%s", "the key is %s, keep it", "`%s`", `{"x":"%s"}`, "a\n%s\nb", "(%s)",
				`{"x":"a\n%s\nb"}`, `a\u001b%s\r`, "q?a%%3D%s%%26",
			} {
				text := fmt.Sprintf(around, c.secret)
				got, n := redact.Mask(text)
				if want := fmt.Sprintf(around, "[secret: "+c.kind+"]"); n != 1 || got != want {
					t.Errorf("Mask(%q)\n got %q (%d)\nwant %q", text, got, n, want)
				}
			}
		})
	}
}

func TestMaskPrivateKeyWithoutEnd(t *testing.T) {
	got, n := redact.Mask("it printed -----BEGIN PRIVATE KEY-----\nMIIEow" + secret("", 40) + " and stopped")
	if want := "it printed [secret: private key] and stopped"; n != 1 || got != want {
		t.Errorf("got %q", got)
	}
}

func TestMaskAssignmentsAndHeaders(t *testing.T) {
	v := secret("", 32)
	for name, c := range map[string]struct{ text, want string }{
		"header": {"Authorization: Bearer " + v, "Authorization: Bearer [secret: credential]"},
		"curl": {
			`curl -H "authorization: bearer ` + v + `" x`,
			`curl -H "authorization: bearer [secret: credential]" x`,
		},
		"basic":            {"Authorization: Basic dXNlcjpwYXNzd29yZDEyMw==", "Authorization: Basic [secret: credential]"},
		"URL":              {"postgres://app:s3cr3t@db.local:5432/x", "postgres://app:[secret: password]@db.local:5432/x"},
		"env file":         {"AWS_SECRET_ACCESS_KEY=" + v, "AWS_SECRET_ACCESS_KEY=[secret: api key]"},
		"shell":            {"export API_KEY='" + v + "'", "export API_KEY='[secret: api key]'"},
		"JSON":             {`{"password": "hunter2x9", "user": "bo"}`, `{"password": "[secret: password]", "user": "bo"}`},
		"JSON inside JSON": {`"{\"client_secret\": \"` + v + `\"}"`, `"{\"client_secret\": \"[secret: secret key]\"}"`},
		"short names": {
			"DB_PASS=hunter22 SMTP_PWD=hunter23 dbPass: hunter24",
			"DB_PASS=[secret: password] SMTP_PWD=[secret: password] dbPass: [secret: password]",
		},
		"YAML":               {"dbPassword: Tr0ub4dor&3", "dbPassword: [secret: password]&3"},
		"query string":       {"GET /v1?access_token=" + v + "&page=2", "GET /v1?access_token=[secret: token]&page=2"},
		"two in one line":    {"TOKEN=" + v + " SECRET=" + v, "TOKEN=[secret: token] SECRET=[secret: secret key]"},
		"a plain random key": {"key: " + v, "key: [secret: key]"},
	} {
		t.Run(name, func(t *testing.T) {
			if got, _ := redact.Mask(c.text); got != c.want {
				t.Errorf("Mask(%q)\n got %q\nwant %q", c.text, got, c.want)
			}
		})
	}
}

func TestMaskKeepsHarmlessText(t *testing.T) {
	pixels := make([]byte, 30_000)
	source := rand.NewChaCha8([32]byte{1})
	_, _ = source.Read(pixels)
	for name, text := range map[string]string{
		"prose": "The password must be changed. Ask for a token at the desk: it is free. The secret: " +
			"always be kind.",
		"German":  "Das Passwort: bitte nie weitergeben! Der Schlüssel liegt unter der Matte.",
		"Chinese": "密码：请不要告诉任何人。token：一次性",
		"Go": "token := os.Getenv(\"API_TOKEN\")\nif token == expectedToken2 { return errToken1 }\n" +
			"key := m.keys[i]\nmaxTokens: 4096,\npassword: cfg.Password,",
		"placeholders": "PASSWORD=${DB_PASSWORD} TOKEN=<your-token-1234567> SECRET={{ .Secret1234567 }} " +
			"API_KEY=xxxxxxxxxxxxxxxxxxxx postgres://u:$PASS@h",
		"git": "commit 83378aad7e74a0e2bb8f37c007a9685fb4609d8a\nAuthor: x\n" +
			"key 83378aad7e74a0e2bb8f37c007a9685fb4609d8a",
		"uuid":  "id: 123e4567-e89b-12d3-a456-426614174000, cache_key: 123e4567-e89b-12d3-a456-426614174000",
		"image": "data:image/png;base64," + base64.StdEncoding.EncodeToString(pixels),
		"usage": `{"input_tokens": 12345678, "output_tokens":17,"max_tokens":8192, "total_token": 123456789012}`,
		"public key": "-----BEGIN PUBLIC KEY-----\nMIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEA\n" +
			"-----END PUBLIC KEY-----",
		"URL":             "http://localhost:8080/@scope/pkg?x=1 and https://x.example/a:b and user@host",
		"words with pass": "bypass=2026-02-11 COMPASS=north2026 overpass: a2b3c4d5",
		"names like secrets": "pypi-server, pypi-simple-2, sk-learn, sk-toolbar-button-primary-large, ghp_ is the prefix, " +
			"npm_config_cache, hf_hub_download, AIza alone",
	} {
		t.Run(name, func(t *testing.T) {
			if got, n := redact.Mask(text); n != 0 {
				t.Errorf("masked %d pieces: %.300q", n, got)
			}
		})
	}
}

func TestURLKeyMasksKeysInErrors(t *testing.T) {
	in := `Post "https://x.example/v1?alt=json&key=any-thing&n=1": dial: https://y.example/?api_key=abc#top`
	want := `Post "https://x.example/v1?alt=json&key=[secret]&n=1": dial: https://y.example/?api_key=[secret]#top`
	if got := redact.URLKey(in); got != want {
		t.Errorf("got %s", got)
	}
}

func FuzzMask(f *testing.F) {
	for _, seed := range []string{
		"", "plain", secret("ghp_", 36), "a=" + secret("", 30), "token: " + secret("", 30) + "]", "://a:b1@",
		"-----BEGIN PRIVATE KEY-----\nabc",
		"Bearer " + secret("", 20), "eyJaaaaaaaaaa.eyJb.c", "password=\"[secret: x]\"", "\xff\xfeAKIA",
		"key=key=key=" + secret("", 40),
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		once, n := redact.Mask(s)
		if n == 0 && once != s {
			t.Fatalf("nothing was masked, yet %q became %q", s, once)
		}
		if n > 0 && !strings.Contains(once, "[secret: ") {
			t.Fatalf("%d masked without a mark: %q", n, once)
		}
		if utf8.ValidString(s) && !utf8.ValidString(once) {
			t.Fatalf("masking broke the UTF-8 of %q: %q", s, once)
		}
		if twice, _ := redact.Mask(once); twice != once {
			t.Fatalf("masking again changed %q to %q", once, twice)
		}
		if cut := redact.URLKey(s); redact.URLKey(cut) != cut {
			t.Fatalf("cutting again changed %q", cut)
		}
	})
}

// BenchmarkMask shows that the time grows with the text and not with what is in it.
func BenchmarkMask(b *testing.B) {
	for name, unit := range map[string]string{
		"prose":     "The token of the house is a key under the mat, as everyone knows here. ",
		"code":      "if err := s.store(ctx, key, value); err != nil { return fmt.Errorf(\"put: %w\", err) }\n",
		"colons":    "://a:://a:://a:",
		"armour":    "-----BEGIN PRIVATE KEY",
		"equals":    "key=key=key=key=",
		"half JWTs": "eyJhbGciOiJIUzI1NiJ9.",
	} {
		for _, size := range []int{1 << 16, 1 << 20} {
			text := strings.Repeat(unit, size/len(unit))
			b.Run(fmt.Sprintf("%s/%dKiB", name, size>>10), func(b *testing.B) {
				b.SetBytes(int64(len(text)))
				for b.Loop() {
					redact.Mask(text)
				}
			})
		}
	}
}

// What is masked in JSON is strings: names, order, numbers and structure stay.
func TestMaskingJSONKeepsItsStructure(t *testing.T) {
	for name, c := range map[string]struct {
		in, want string
		n        int
	}{
		"nothing": {`{ "a" : [1, "x", {"b":null}] }`, `{ "a" : [1, "x", {"b":null}] }`, 0},
		"a value by its name": {
			`{"password": "hunter22!x", "user":"ann"}`,
			`{"password": "[secret: password]", "user":"ann"}`, 1,
		},
		"a value by its form": {`["AKIAIOSFODNN7EXAMPLE"]`, `["[secret: aws key id]"]`, 1},
		"inside a text": {
			`{"text":"key AKIAIOSFODNN7EXAMPLE \"quoted\""}`,
			`{"text":"key [secret: aws key id] \"quoted\""}`, 1,
		},
		"a key that is cut":  {`{"out":"-----BEGIN RSA PRIVATE KEY-----\nMIIEow\\"}`, `{"out":"[secret: private key]"}`, 1},
		"a name that is one": {`{"AKIAIOSFODNN7EXAMPLE":1}`, `{"AKIAIOSFODNN7EXAMPLE":1}`, 0},
		"no JSON":            {`{"a":`, `{"a":`, 0},
		"half a pair":        {`{"a":"\ud800","b":"AKIAIOSFODNN7EXAMPLE"}`, `{"a":"\ud800","b":"[secret: aws key id]"}`, 1},
	} {
		t.Run(name, func(t *testing.T) {
			var m redact.Masker
			got := string(m.JSON(session.JSON(c.in)))
			if got != c.want || m.Masked != c.n {
				t.Errorf("%s with %d masked, want %s with %d", got, m.Masked, c.want, c.n)
			}
			if json.Valid([]byte(c.in)) != json.Valid([]byte(got)) {
				t.Error("it is JSON no more")
			}
		})
	}
	if got := (*redact.Masker)(nil).Text("AKIAIOSFODNN7EXAMPLE"); got != "AKIAIOSFODNN7EXAMPLE" {
		t.Error("a nil Masker masked it")
	}
}

func TestMaskingAMessageKeepsItsParts(t *testing.T) {
	var m redact.Masker
	secret := "token AKIAIOSFODNN7EXAMPLE"
	blob := &session.Blob{MediaType: session.TextBlob, Data: []byte(secret)}
	picture := &session.Blob{MediaType: "image/png", Data: []byte(secret)}
	msg := session.Message{Extra: session.JSON(`{"a":"AKIAIOSFODNN7EXAMPLE"}`), Parts: []session.Part{
		session.TextPart(secret),
		{Kind: session.PartToolCall, CallID: "AKIAIOSFODNN7EXAMPLE", Arguments: `{"k":"AKIAIOSFODNN7EXAMPLE"}`},
		{Kind: session.PartToolResult, Blob: blob},
		{Kind: session.PartImage, Blob: picture},
		{Kind: session.PartData, Blob: blob},
		{Kind: session.PartData, Blob: &session.Blob{
			MediaType: "application/json",
			Data:      []byte(`{"password":"hunter2x9"}`),
		}},
	}}
	m.Message(&msg)
	if m.Masked != 6 || len(msg.Parts) != 6 || string(msg.Parts[5].Blob.Data) != `{"password":"[secret: password]"}` ||
		msg.Parts[1].CallID != "AKIAIOSFODNN7EXAMPLE" || string(blob.Data) != secret || msg.Parts[3].Blob != picture {
		t.Errorf("%d masked: %+v", m.Masked, msg)
	}
	if msg.Parts[1].Arguments != `{"k":"[secret: aws key id]"}` ||
		msg.Parts[2].Content() != "token [secret: aws key id]" ||
		string(msg.Parts[4].Blob.Data) != "token [secret: aws key id]" {
		t.Errorf("%+v", msg.Parts)
	}
}
