//! Settings of S3 from the files `~/.aws/credentials` and `~/.aws/config`, for what the environment does not set.

use object_store::aws::AmazonS3ConfigKey;
use std::collections::HashMap;
use std::env;
use std::path::PathBuf;

/// Returns the settings of the profile `AWS_PROFILE` (`default`) that no environment variable gives.
pub(crate) fn settings() -> Vec<(AmazonS3ConfigKey, String)> {
    let profile = env::var("AWS_PROFILE").unwrap_or_else(|_| "default".to_owned());
    let home = env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
    let file = |variable: &str, name: &str| {
        let path = env::var_os(variable).map_or_else(|| home.join(".aws").join(name), PathBuf::from);
        std::fs::read_to_string(path).unwrap_or_default()
    };
    // In `config`, sections are named `profile NAME`, except for `default`.
    let section = if profile == "default" { profile.clone() } else { format!("profile {profile}") };
    let mut found = members(&file("AWS_CONFIG_FILE", "config"), &section);
    found.extend(members(&file("AWS_SHARED_CREDENTIALS_FILE", "credentials"), &profile));
    chosen(&mut found, |variable| env::var_os(variable).is_some())
}

fn chosen(found: &mut HashMap<String, String>, is_set: impl Fn(&str) -> bool) -> Vec<(AmazonS3ConfigKey, String)> {
    use AmazonS3ConfigKey as Key;
    let mut settings = vec![];
    let mut take = |name: &str, key: Key, variables: &[&str]| {
        if let Some(value) = found.remove(name).filter(|_| !variables.iter().any(|variable| is_set(variable))) {
            settings.push((key, value));
        }
    };
    // Keys belong together: a token of a file must not join an id of the environment.
    const ID: [&str; 2] = ["AWS_ACCESS_KEY_ID", "AWS_WEB_IDENTITY_TOKEN_FILE"];
    take("aws_access_key_id", Key::AccessKeyId, &ID);
    take("aws_secret_access_key", Key::SecretAccessKey, &ID);
    take("aws_session_token", Key::Token, &ID);
    take("region", Key::Region, &["AWS_REGION", "AWS_DEFAULT_REGION"]);
    take("endpoint_url", Key::Endpoint, &["AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT"]);
    settings
}

/// Returns the members of a section: lines `NAME = VALUE` after `[SECTION]`. Indented lines belong to nested settings.
fn members(text: &str, section: &str) -> HashMap<String, String> {
    let mut inside = false;
    let mut found = HashMap::new();
    for line in text.lines() {
        if let Some(name) = line.trim().strip_prefix('[').and_then(|rest| rest.split(']').next()) {
            inside = name.split_whitespace().eq(section.split_whitespace());
        } else if inside
            && !line.starts_with([' ', '\t', '#', ';'])
            && let Some((name, value)) = line.split_once('=')
        {
            found.insert(name.trim().to_owned(), value.trim().to_owned());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const CREDENTIALS: &str = "# comment\n[default]\naws_access_key_id = A\naws_secret_access_key=B=\n\n[ work ]\n\
        aws_access_key_id = C\n  nested = 1\nregion = eu-west-1\n";

    #[test]
    fn takes_the_section_of_the_profile() {
        let default = members(CREDENTIALS, "default");
        assert_eq!((default["aws_access_key_id"].as_str(), default["aws_secret_access_key"].as_str()), ("A", "B="));
        assert!(!default.contains_key("region"));
        let work = members(CREDENTIALS, "work");
        assert_eq!((work["aws_access_key_id"].as_str(), work["region"].as_str()), ("C", "eu-west-1"));
        assert!(!work.contains_key("nested"));
        assert!(members("[profile x]\nregion = r\n", "profile x").contains_key("region"));
        assert!(members(CREDENTIALS, "other").is_empty());
    }

    #[test]
    fn the_environment_wins() {
        let settings = |set: &'static str| chosen(&mut members(CREDENTIALS, "work"), |variable| variable == set).len();
        assert_eq!(settings(""), 2);
        assert_eq!(settings("AWS_ACCESS_KEY_ID"), 1);
        assert_eq!(settings("AWS_DEFAULT_REGION"), 1);
    }
}
