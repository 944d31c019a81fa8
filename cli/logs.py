"""What the server logs, as lines for people or as JSON for machines. Nobody's words are in it either way."""

import json
import logging
import time
from enum import StrEnum


class LogFormat(StrEnum):
    TEXT = "text"
    JSON = "json"


class JsonLines(logging.Formatter):
    """One object a line: time (RFC 3339, UTC), level, logger, message, and the traceback where there is one."""

    def format(self, record: logging.LogRecord) -> str:
        at = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        line = {
            "time": f"{at}.{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False)


def set_up(kind: LogFormat) -> None:
    handler = logging.StreamHandler()
    text = logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s")
    handler.setFormatter(JsonLines() if kind is LogFormat.JSON else text)
    logging.basicConfig(level=logging.INFO, handlers=[handler])
