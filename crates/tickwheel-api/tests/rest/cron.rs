//! Previews of cron expressions: what is answered, and how bad ones are refused.

use serde_json::{Value, json};
use tickwheel_core::schedule::ZONE_DATA_VERSION;

use crate::server::Server;

const PREVIEW: &str = "/api/v1/cron/preview";

async fn preview(request: Value) -> Value {
    Server::start().post(PREVIEW, request).await.ok(200)
}

/// The refusal of a well-formed request: pointer, code and detail of every bad field.
async fn refusal(request: Value) -> Vec<(String, String, String)> {
    let answer = Server::start().post(PREVIEW, request).await;
    assert_eq!(answer.problem(422), "validation_failed");
    let text = |error: &Value, field: &str| error[field].as_str().expect("text").to_owned();
    let errors = answer.body["errors"].as_array().expect("errors").iter();
    errors.map(|error| (text(error, "pointer"), text(error, "code"), text(error, "detail"))).collect()
}

fn bad(pointer: &str, code: &str, detail: &str) -> (String, String, String) {
    (pointer.into(), code.into(), detail.into())
}

#[tokio::test]
async fn a_preview_says_when_and_what_the_next_clock_change_does() {
    let answer = preview(json!({"cron": "30 2 * * *", "timezone": "america/new_york", "count": 2,
        "after": "2026-03-07T12:00:00-05:00"}))
    .await;
    let expected = json!({
        "description": "at 02:30 every day",
        "timezone": "America/New_York",
        "tzdb_version": ZONE_DATA_VERSION,
        "after": "2026-03-07T17:00:00.000Z",
        "never": false,
        "next": ["2026-03-08T03:00:00-04:00", "2026-03-09T02:30:00-04:00"],
        "next_zone_change": {
            "at": "2026-03-08T03:00:00-04:00", "kind": "gap", "offset_before": "-05:00", "offset_after": "-04:00",
            "effect": "the clock goes from 2026-03-08 02:00 to 03:00: the firing of 02:30 comes right after it, at 03:00",
        },
    });
    assert_eq!(answer, expected);
}

#[tokio::test]
async fn it_looks_from_now_in_utc_five_firings_ahead_unless_asked_otherwise() {
    let answer = preview(json!({"cron": "@hourly"})).await;
    assert_eq!((&answer["timezone"], &answer["after"]), (&json!("UTC"), &json!("2027-01-15T08:00:00.000Z")));
    let hours = ["09", "10", "11", "12", "13"].map(|hour| format!("2027-01-15T{hour}:00:00+00:00"));
    assert_eq!(answer["next"], json!(hours));
    assert_eq!(answer["next_zone_change"], Value::Null);
}

#[tokio::test]
async fn an_interval_can_be_given_in_both_spellings() {
    for interval in [json!({"cron": "@every 90s"}), json!({"every": "90s"}), json!({"every": 90})] {
        let mut request = interval.clone();
        request["after"] = json!("2026-01-01T00:00:00Z");
        request["count"] = json!(2);
        let answer = preview(request).await;
        assert_eq!(answer["description"], "every 1 minute 30 seconds", "{interval}");
        assert_eq!(answer["next"], json!(["2026-01-01T00:01:30+00:00", "2026-01-01T00:03:00+00:00"]));
    }
}

#[tokio::test]
async fn the_policies_are_heeded() {
    let first = async |mut request: Value| {
        request["count"] = json!(1);
        preview(request).await["next"][0].as_str().expect("a time").to_owned()
    };
    let gap = |word: &str| json!({"cron": "30 2 * * *", "timezone": "America/New_York", "after": "2026-03-08T00:00:00-05:00", "dst_gap": word});
    assert_eq!(first(gap("run_after")).await, "2026-03-08T03:00:00-04:00");
    assert_eq!(first(gap("skip")).await, "2026-03-09T02:30:00-04:00");
    assert_eq!(first(gap("shift")).await, "2026-03-08T03:30:00-04:00");
    let last = json!({"cron": "30 1 * * *", "timezone": "America/New_York", "after": "2026-11-01T00:00:00-04:00",
        "dst_fold": "last"});
    assert_eq!(first(last).await, "2026-11-01T01:30:00-05:00");
    let friday_13 = json!({"cron": "0 0 13 * FRI", "after": "2026-01-01T00:00:00Z", "day_logic": "and"});
    assert_eq!(first(friday_13).await, "2026-02-13T00:00:00+00:00");
}

#[tokio::test]
async fn a_date_that_never_comes_is_no_error() {
    let answer = preview(json!({"cron": "0 0 30 2 *", "timezone": "Europe/Berlin"})).await;
    assert_eq!((&answer["never"], &answer["next"]), (&json!(true), &json!([])));
    assert_eq!(answer["description"], "at 00:00 on the 30th of February, which never comes");
    assert_eq!(answer["next_zone_change"], Value::Null);
    let after_all = preview(json!({"cron": "@daily", "after": "9999-12-30T22:00:00Z"})).await;
    assert_eq!(after_all["never"], true);
}

#[tokio::test]
async fn a_bad_expression_is_refused_with_field_value_and_what_is_allowed() {
    let fields =
        "expected 5 fields (minute hour day-of-month month day-of-week) or 6 with leading seconds, got";
    for (cron, detail) in [
        ("60 * * * *", "minute: 60 is out of range, allowed are 0-59".to_owned()),
        ("*/0 * * * *", "minute: the step of */0 is out of range, allowed are 1-60".into()),
        ("0 0 * * MON#6", "day-of-week: MON#6 is out of range, allowed are #1-#5 after the day".into()),
        ("* * * *", format!("{fields} 4")),
        ("* * * * * * * *", format!("{fields} 8")),
        ("", format!("{fields} 0")),
        ("\u{0} * * * *", "minute: \\u{0} is not understood, allowed are 0-59".into()),
        (&"*".repeat(10_000), "the expression has 10000 bytes, allowed are 256".into()),
    ] {
        let expected = vec![bad("/cron", "invalid_cron", &detail)];
        assert_eq!(refusal(json!({"cron": cron})).await, expected, "{cron:.40}");
    }
}

#[tokio::test]
async fn an_unknown_zone_is_refused_with_the_one_that_was_probably_meant() {
    let unknown = |detail: &str| vec![bad("/timezone", "unknown_timezone", detail)];
    let zone = async |name: &str| refusal(json!({"cron": "@daily", "timezone": name})).await;
    let berlin = r#"unknown time zone "Berlin"; did you mean Europe/Berlin?"#;
    assert_eq!(zone("Berlin").await, unknown(berlin));
    let nowhere = r#"unknown time zone ""; use a name of the IANA database, such as Europe/Berlin"#;
    assert_eq!(zone("").await, unknown(nowhere));
}

#[tokio::test]
async fn everything_that_is_wrong_is_told_at_once() {
    let pointers = async |request: Value| {
        refusal(request)
            .await
            .into_iter()
            .map(|(pointer, code, _)| format!("{pointer} {code}"))
            .collect::<Vec<_>>()
    };
    let both = json!({"cron": "x * * * *", "timezone": "Mars/Olympus"});
    assert_eq!(pointers(both).await, ["/cron invalid_cron", "/timezone unknown_timezone"]);
    let conflict = json!({"cron": "@daily", "every": "5m", "count": 1001});
    assert_eq!(pointers(conflict).await, ["/every conflict", "/count out_of_range"]);
    for (every, code) in [("1ms", "out_of_range"), ("367d", "out_of_range"), ("1500ms", "invalid_value")] {
        assert_eq!(pointers(json!({"every": every})).await, [format!("/every {code}")], "{every}");
    }
    for field in [
        json!({"count": 0}),
        json!({"count": -1}),
        json!({"after": "soon"}),
        json!({"after": "0001-01-01T00:00:00Z"}),
        json!({"dst_gap": "jump"}),
        json!({"dst_fold": "twice"}),
        json!({"day_logic": "xor"}),
    ] {
        let name = field.as_object().and_then(|fields| fields.keys().next().cloned()).expect("one field");
        let mut request = field;
        request["cron"] = json!("@daily");
        assert!(pointers(request).await[0].starts_with(&format!("/{name} ")), "{name}");
    }
}

#[tokio::test]
async fn a_malformed_request_is_refused_as_everywhere() {
    let server = Server::start();
    for (body, code, pointer) in [
        ("{}", "missing_field", "/cron"),
        (r#"{"timezone":"UTC"}"#, "missing_field", "/cron"),
        (r#"{"cron":"@daily","tz":"UTC"}"#, "unknown_field", "/tz"),
        (r#"{"cron":5}"#, "wrong_type", "/cron"),
        (r#"{"cron":"@daily","cron":"@hourly"}"#, "duplicate_field", "/cron"),
        (r#"{"cron":"@daily""#, "invalid_json", ""),
        (r#"["@daily"]"#, "wrong_type", ""),
    ] {
        let answer = server.send_text("POST", PREVIEW, body).await;
        assert_eq!(answer.problem(400), code, "{body}");
        assert_eq!(answer.pointers(), [pointer], "{body}");
    }
}
