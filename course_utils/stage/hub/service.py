"""The room on a JupyterHub: a service that the hub starts.

Whoever is logged in may guess, and instructors see the wall. The hub's environment says where the
service listens; COURSE_INSTRUCTORS names who may see the wall. A user has one guess, stored under
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
    hub = HubOAuth.instance()
    room = Room()
    prefix = os.environ["JUPYTERHUB_SERVICE_PREFIX"]
    instructors = os.environ["COURSE_INSTRUCTORS"].split()

    async def phone(asking: apps.Handler) -> str | None:
        """The string under which this user's guess is stored; None if they may not guess."""
        name = await name_of(asking, hub)
        if not name:
            return None
        pseudonym = hmac.digest(SECRET, name.encode(), "sha256").hex()
        return pseudonym if room.admit(pseudonym) else None

    async def presenter(asking: apps.Handler) -> str | None:
        name = await name_of(asking, hub)
        if name and name not in instructors:
            raise HTTPError(403)
        return name

    kept = Path(os.environ.get("COURSE_ROOMS", "rooms"))
    wall_pages = apps.wall(room, apps.PAGES, kept, prefix)
    wall = (f"{prefix}wall/", apps.Door(presenter, framed="'self'"), wall_pages)
    phones = (prefix, apps.Door(phone), apps.phones(room))
    back = [(f"{prefix}oauth_callback", HubOAuthCallbackHandler)]
    app = apps.application(wall, phones, more=back, cookie_secret=secrets.token_bytes(32))
    where = urlsplit(os.environ["JUPYTERHUB_SERVICE_URL"])
    HTTPServer(app, xheaders=True, **BOUNDS).listen(where.port, where.hostname)
    await asyncio.Event().wait()


async def name_of(asking: apps.Handler, hub: HubOAuth) -> str | None:
    """The user who asks. Somebody who is not logged in is sent to the hub's log-in.

    A request that is not for a page, such as a script's, is refused instead.
    """
    token = asking.get_secure_cookie(hub.cookie_name)
    if token:
        session = hub.get_session_id(asking)
        user = await hub.user_for_token(token.decode(), session_id=session, sync=False)
        if user and hub.check_scopes(hub.access_scopes, user):
            return user["name"]
    if "text/html" not in asking.request.headers.get("Accept", ""):
        raise HTTPError(403)
    state = hub.set_state_cookie(asking, next_url=asking.request.uri)
    asking.redirect(url_concat(hub.login_url, {"state": state}))
    return None


if __name__ == "__main__":
    logging.disable()  # so that nobody can read who took part
    asyncio.run(main())
