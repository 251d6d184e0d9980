package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sessiond/internal/testkit"
	"sessiond/internal/testkit/storetest"
)

// authority signs certificates.
type authority struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
}

func newAuthority(t *testing.T, name string) authority {
	t.Helper()
	a := authority{t: t, key: testkit.Must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)}
	a.cert = &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-48 * time.Hour),
		NotAfter: time.Now().Add(48 * time.Hour),
		IsCA:     true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	a.pem = pemOf("CERTIFICATE", testkit.Must(x509.CreateCertificate(rand.Reader, a.cert, a.cert, &a.key.PublicKey,
		a.key))(t))
	return a
}

// sign returns a certificate for a user, or for a server with a host name, and its key.
func (a authority) sign(name, host string, until time.Duration) (cert, key []byte) {
	a.t.Helper()
	own := testkit.Must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(a.t)
	in := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-48 * time.Hour),
		NotAfter: time.Now().Add(until),
		KeyUsage: x509.KeyUsageDigitalSignature, DNSNames: []string{host},
	}
	cert = pemOf("CERTIFICATE", testkit.Must(x509.CreateCertificate(rand.Reader, in, a.cert, &own.PublicKey, a.key))(a.t))
	return cert, pemOf("EC PRIVATE KEY", testkit.Must(x509.MarshalECPrivateKey(own))(a.t))
}

func pemOf(kind string, bytes []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: bytes})
}

// TestPostgresOverTLS reaches a server that wants TLS and a certificate of each client. What is wrong with a
// certificate is said, with what to do.
func TestPostgresOverTLS(t *testing.T) {
	t.Parallel()
	cluster := storetest.NewCluster(t)
	ours, others := newAuthority(t, "ours"), newAuthority(t, "another")
	dir := t.TempDir()
	file := func(name string, content []byte) string {
		path := filepath.Join(dir, name)
		testkit.Check(t, os.WriteFile(path, content, 0o600))
		return path
	}
	pair := func(name string, cert, key []byte) string {
		return "&sslcert=" + file(name+".crt", cert) + "&sslkey=" + file(name+".key", key)
	}
	ca, otherCA := "sslrootcert="+file("ca.pem", ours.pem), "sslrootcert="+file("other.pem", others.pem)
	userCert, userKey := ours.sign("app", "", time.Hour)
	user := pair("user", userCert, userKey)
	strangeCert, strangeKey := others.sign("app", "", time.Hour)
	serve := func(authority authority, host string, until time.Duration) {
		cert, key := authority.sign("db", host, until)
		cluster.Write("server.crt", cert)
		cluster.Write("server.key", key)
		cluster.Write("ca.pem", ours.pem)
		cluster.Stop()
		cluster.Start()
	}
	onServer(t, cluster.Address(), `CREATE ROLE app LOGIN SUPERUSER`, `ALTER SYSTEM SET ssl = on`,
		`ALTER SYSTEM SET ssl_ca_file = 'ca.pem'`,
		`COPY (SELECT 'local all all trust' UNION ALL SELECT 'hostssl all app 127.0.0.1/32 cert') TO '`+cluster.HBA()+`'`)
	serve(ours, "localhost", time.Hour)
	h := home{t, t.TempDir()}
	_, port, _ := strings.Cut(cluster.Host(), ":")
	at := func(host, query string) string {
		return "postgres://app@" + host + ":" + port + "/postgres?" + query
	}
	h.run("append", "--db", at("localhost", "sslmode=verify-full&"+ca+user), "--new", "--title", "A plan", "user", "hello")
	for name, c := range map[string]struct{ address, says string }{
		"another authority": {
			at("localhost", "sslmode=verify-full&"+otherCA+user),
			"signed by unknown authority",
		},
		"another name": {
			at("127.0.0.1", "sslmode=verify-full&"+ca+user),
			"cannot validate certificate for 127.0.0.1",
		},
		"another name, unchecked": {at("127.0.0.1", "sslmode=verify-ca&"+ca+user), ""},
		"no client certificate": {
			at("localhost", "sslmode=verify-full&"+ca),
			"refuses the user, the password or the client certificate of postgres://app@localhost",
		},
		"another's client certificate": {at("localhost", "sslmode=verify-full&"+ca+pair("strange", strangeCert,
			strangeKey)), "refuses the user, the password or the client certificate"},
		"a key of another certificate": {
			at("localhost", "sslmode=verify-full&"+ca+pair("mixed", userCert, strangeKey)),
			"cannot be used: failed to configure TLS (unable to load cert: tls: private key does not match public key)",
		},
		"no file of the authority": {
			at("localhost", "sslmode=verify-full&sslrootcert=/nowhere/ca.pem"),
			"/nowhere/ca.pem: no such file",
		},
		"a certificate without its key": {
			at("localhost", "sslmode=verify-full&"+ca+"&sslcert="+dir+"/user.crt"),
			`both "sslcert" and "sslkey" are required`,
		},
		"without TLS, which it requires": {at("localhost", "sslmode=disable"), "no encryption"},
	} {
		h.says(name, c.address, c.says)
	}
	serve(ours, "localhost", -time.Hour)
	h.says("an expired certificate", at("localhost", "sslmode=verify-full&"+ca+user), "certificate has expired")
}

// says lists the sessions of an address, which succeeds if refusal is "", else fails with it.
func (h home) says(name, address, refusal string) {
	h.t.Helper()
	status, said := h.tries("ls", "--all", "--db", address)
	if refusal == "" && status != exitDone || refusal != "" &&
		(status == exitDone || !strings.Contains(said, refusal) || strings.Count(said, "\n") > 1) {
		h.t.Errorf("%s: status %d: %s", name, status, said)
	}
	if strings.Contains(said, "x509") && !strings.Contains(said, "check sslrootcert, and the name in the address") {
		h.t.Errorf("%s does not say what to do: %s", name, said)
	}
}
