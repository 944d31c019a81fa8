# Built from the repository's root: docker build -f docker/worldroom.Dockerfile .
FROM python:3.11.13-slim-bookworm AS build
COPY . /source
RUN /source/docker/install.sh /source /opt/worldroom

FROM python:3.11.13-slim-bookworm
RUN useradd --uid 10001 --create-home worldroom && mkdir -p /data /cache && chown worldroom /data /cache
COPY --from=build /opt/worldroom /opt/worldroom
ENV PATH=/opt/worldroom/bin:$PATH WORLDROOM_DATA=/data WORLDROOM_CACHE=/cache PYTHONDONTWRITEBYTECODE=1
USER 10001
VOLUME /data
EXPOSE 8080/tcp 50000-50100/udp
HEALTHCHECK --interval=10s --timeout=3s --start-period=120s \
  CMD ["python3", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:8080/readyz', timeout=2)"]
STOPSIGNAL SIGTERM
ENTRYPOINT ["worldroom"]
CMD ["serve", "--host", "0.0.0.0"]
