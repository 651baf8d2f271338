//! What the wrapper adds to requests and responses of the program.

use bincode::Options;
use ddbx::{TracedRequest, TracedResponse};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::Decoder;

/// As tarpc's bincode transport reads it.
pub(super) const BINCODE: Decoder = Decoder::new(
    "envelope_bincode",
    || {
        let requests = REQUESTS.iter().map(|text| rewritten::<Request>(text));
        requests.chain(RESPONSES.iter().map(|text| rewritten::<Response>(text))).collect()
    },
    |bytes| {
        let options = bincode::DefaultOptions::new;
        options().deserialize::<Request>(bytes).is_ok()
            | options().deserialize::<Response>(bytes).is_ok()
    },
)
.worst(|| {
    // Bytes without end, claimed and real; the same of the processes of a stack among them.
    let claim = [&[254, 10, 253][..], &u64::MAX.to_le_bytes()].concat();
    let real = [&[254, 10, 252][..], &(8u32 << 20).to_le_bytes(), &vec![1; 8 << 20]].concat();
    let stack = [&[254, 10, 252][..], &(8u32 << 20).to_le_bytes(), &vec![255; 8 << 20]].concat();
    vec![claim, real, stack]
});

/// As tarpc's JSON transport reads it.
pub(super) const JSON: Decoder = Decoder::new(
    "envelope_json",
    || REQUESTS.iter().chain(RESPONSES).map(|text| text.as_bytes().to_vec()).collect(),
    |bytes| {
        serde_json::from_slice::<Request>(bytes).is_ok()
            | serde_json::from_slice::<Response>(bytes).is_ok()
    },
)
.worst(|| {
    let deep = format!("{{\"ddbx\":{}", "[".repeat(1 << 20));
    let stack = format!("{{\"ddbx\":{{\"stack\":[{}1]", "1,".repeat(1 << 20));
    vec![deep.into_bytes(), stack.into_bytes()]
});

type Request = TracedRequest<Asked>;
type Response = TracedResponse<Result<Vec<String>, u64>>;

/// What a program says to itself.
#[derive(Debug, Serialize, Deserialize)]
enum Asked {
    Reserve { item: String, count: u32 },
    Report(Vec<(u64, Option<String>)>),
}

const REQUESTS: &[&str] = &[
    r#"{"ddbx":null,"body":{"message":{"Reserve":{"item":"tea","count":3}}}}"#,
    r#"{"ddbx":{"stack":[1,2,18446744073709551615],"control":{"Known":"gateway/main"},"path":[3,1],"delay":5000000,"is_free":false,"remaining_nanos":9000000000,"has_waited":false,"sent":17,"hello":null},"body":{"message":{"Report":[[1,"a"],[2,null]]}}}"#,
    r#"{"ddbx":{"stack":[7,8],"control":{"Root":{"hash":7,"nth":2,"began":["gateway","Shop.buy"]}},"path":[1,4],"delay":0,"is_free":false,"remaining_nanos":5,"has_waited":false,"sent":0,"hello":null},"body":{"message":{"Reserve":{"item":"a","count":1}}}}"#,
    r#"{"ddbx":{"stack":[7],"control":{"Root":{"hash":7,"nth":2}},"path":[1],"delay":0,"is_free":true,"remaining_nanos":0,"has_waited":true,"sent":1,"hello":{"name":"gateway#2","connection":4,"connected":2}},"body":{"message":{"Reserve":{"item":"","count":0}}}}"#,
];

const RESPONSES: &[&str] = &[
    r#"{"ddbx":null,"body":{"message":{"Ok":["tea","milk"]}}}"#,
    r#"{"ddbx":null,"body":{"short":{"body":{"Ok":["tea"]},"says":{"delay":5000000}}}}"#,
    r#"{"ddbx":null,"body":{"short":{"body":{"Err":4},"says":{"sent":18}}}}"#,
    r#"{"ddbx":{"delay":5000000,"is_free":false,"from":7,"sent":18,"name":null},"body":{"message":{"Err":4}}}"#,
    r#"{"ddbx":{"delay":0,"is_free":true,"from":1,"sent":2,"name":"inventory"},"body":{"failure":{"kind":13,"detail":"too many"}}}"#,
];

/// The same in bincode.
fn rewritten<T: Serialize + DeserializeOwned>(text: &str) -> Vec<u8> {
    let message: T = serde_json::from_str(text).expect("a seed that is right");
    bincode::DefaultOptions::new().serialize(&message).expect("what was read can be written")
}
