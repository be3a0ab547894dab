"""The room on a JupyterHub: a service that the hub starts. Whoever is logged in may guess, and instructors see the wall.

The hub's environment says where it listens; COURSE_INSTRUCTORS names who may see the wall. One user has one guess, under
a string that only this process can make of the name.
"""

import asyncio
import hmac
import logging
import os
import secrets
from pathlib import Path
from urllib.parse import urlsplit

from jupyterhub.services.auth import HubOAuth, HubOAuthCallbackHandler
from tornado.httpserver import HTTPServer
from tornado.httputil import url_concat
from tornado.web import HTTPError

from course_utils.stage.poll import apps
from course_utils.stage.poll.gate import BOUNDS
from course_utils.stage.poll.rounds import Room

SECRET = secrets.token_bytes(32)


async def main() -> None:
    hub, room, prefix = HubOAuth.instance(), Room(), os.environ["JUPYTERHUB_SERVICE_PREFIX"]
    instructors = os.environ["COURSE_INSTRUCTORS"].split()

    async def name_of(asking: apps.Handler) -> str | None:
        """Who is logged in. Whoever is not is sent to the hub, if a page was asked for."""
        token = (asking.get_secure_cookie(hub.cookie_name) or b"").decode()
        session = hub.get_session_id(asking)
        user = token and await hub.user_for_token(token, session_id=session, sync=False)
        if user and hub.check_scopes(hub.access_scopes, user):
            return user["name"]
        if "text/html" not in asking.request.headers.get("Accept", ""):
            raise HTTPError(403)
        state = hub.set_state_cookie(asking, next_url=asking.request.uri)
        asking.redirect(url_concat(hub.login_url, {"state": state}))
        return None

    async def phone(asking: apps.Handler) -> str | None:
        name = await name_of(asking) or ""
        one = hmac.digest(SECRET, name.encode(), "sha256").hex()
        return one if name and room.admit(one) else None

    async def presenter(asking: apps.Handler) -> str | None:
        name = await name_of(asking)
        if name and name not in instructors:
            raise HTTPError(403)
        return name

    kept = Path(os.environ.get("COURSE_ROOMS", "rooms"))
    wall = (
        f"{prefix}wall/",
        apps.Door(presenter, framed="'self'"),
        apps.wall(room, apps.PAGES, kept, prefix),
    )
    phones = prefix, apps.Door(phone), apps.phones(room)
    back = [(f"{prefix}oauth_callback", HubOAuthCallbackHandler)]
    app = apps.application(wall, phones, more=back, cookie_secret=secrets.token_bytes(32))
    where = urlsplit(os.environ["JUPYTERHUB_SERVICE_URL"])
    HTTPServer(app, xheaders=True, **BOUNDS).listen(where.port, where.hostname)
    await asyncio.Event().wait()


if __name__ == "__main__":
    logging.disable()  # nobody reads who came
    asyncio.run(main())
