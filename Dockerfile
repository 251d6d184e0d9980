# A static binary and nothing else: docker build -t sessiond .
FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
COPY clients/go/go.mod clients/go/
RUN go mod download
COPY . .
RUN CGO_ENABLED=0 go build -trimpath -ldflags='-s -w' -o /out/sessiond ./cmd/sessiond \
 && install -d -m 0700 /out/data /out/tmp

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /usr/local/go/lib/time/zoneinfo.zip /zoneinfo.zip
COPY --from=build --chown=65532:65532 /out/data /data
COPY --from=build --chown=65532:65532 /out/tmp /tmp
COPY --from=build /out/sessiond /sessiond
ENV ZONEINFO=/zoneinfo.zip \
    HOME=/data \
    SESSIOND_DB=/data/sessions.db \
    SESSIOND_SOCKET=off \
    SESSIOND_LISTEN=0.0.0.0:7433
USER 65532:65532
VOLUME /data
EXPOSE 7433
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=30s --timeout=5s --start-period=10s CMD ["/sessiond", "healthcheck"]
ENTRYPOINT ["/sessiond"]
CMD ["serve"]
