"""Submits an email and waits for its receipt: `python submit.py ann@example.com`."""

import sys

from jobs import SendEmail, send_email

from tickwheel import Client, JobFailed


def main(address: str) -> int:
    with Client() as client:
        handle = client.submit(send_email, SendEmail(address, "Hi"))
        print(f"submitted {handle.id}")
        try:
            receipt = handle.wait("1m")
        except JobFailed as error:
            print(f"{error.code}: {error}")
            return 1
        print(f"sent as {receipt.message_id}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
