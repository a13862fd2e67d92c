//! JSON schema of scenario files, derived from the types that read them.

use schemars::Schema;
use schemars::generate::SchemaSettings;
use schemars::transform::{RecursiveTransform, Transform as _};
use serde_json::Value;

use crate::scenario::ScenarioConfig;

/// The JSON schema of scenario files, for editors.
pub fn schema() -> Schema {
    let mut schema = SchemaSettings::draft2020_12()
        .into_generator()
        .into_root_schema_for::<ScenarioConfig>();
    schema.insert("title".to_owned(), "Shallows scenario".into());
    RecursiveTransform(plain_description).transform(&mut schema);
    schema
}

/// Takes the links out of a description that was written for Rust's documentation.
fn plain_description(schema: &mut Schema) {
    if let Some(Value::String(text)) = schema.get_mut("description") {
        *text = text.replace("[`", "`").replace("`]", "`");
    }
}
