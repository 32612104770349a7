# syntax=docker/dockerfile:1

# The compiler's Debian is the one of the final stage: a newer one would link against a newer glibc.
FROM rust:1.94-bookworm AS build
WORKDIR /source
COPY . .
# What cargo fetched and built stays on the builder for the next time; a mount is not part of the image, so the
# binaries are copied out of it in the same step.
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/source/target \
    cargo build --locked --release --workspace --bins \
    && mkdir /out \
    && cp target/release/catchword target/release/annotation-api /out/

FROM debian:bookworm-slim
# The slim image has no certificates, and a managed Elasticsearch is reached by HTTPS.
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /out/ /usr/local/bin/
COPY examples/annotations/catchword.toml examples/annotations/annotation.json /etc/catchword/
ENV CATCHWORD_CONFIG=/etc/catchword/catchword.toml
# nobody: the programs read their configuration and own no file
USER 65534:65534
CMD ["catchword", "--help"]
