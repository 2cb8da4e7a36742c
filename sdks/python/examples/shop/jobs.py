"""The contract: what kinds of work there are. Imported by whoever submits and by whoever works."""

from dataclasses import dataclass

from tickwheel import JobType


@dataclass
class SendEmail:
    to: str
    subject: str


@dataclass
class Receipt:
    message_id: str


@dataclass
class IndexDoc:
    id: int
    text: str


send_email = JobType("send_email", SendEmail, Receipt, queue="mail", max_retries=5, timeout="30s")
index_doc = JobType("index_doc", IndexDoc, bool, queue="mail")
