//! Who asks the API server, and how it knows them and they know it: tokens, kubeconfigs, keys and
//! certificates, all made anew for each control plane.

use std::fs;
use std::path::{Path, PathBuf};

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
};
use serde_json::json;

use crate::failure::Failure;

/// Who asks. Authorization is RBAC, so each may do what roles give him.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Identity {
    /// In `system:masters`: everything.
    Admin,
    /// kube-scheduler, with the roles that Kubernetes ships for it.
    KubeScheduler,
    /// Phalanx, with the roles that a test gives it: at first none.
    Phalanx,
}

impl Identity {
    /// Each.
    pub const ALL: [Self; 3] = [Self::Admin, Self::KubeScheduler, Self::Phalanx];

    /// The user as RBAC names it.
    #[must_use]
    pub fn user(self) -> &'static str {
        match self {
            Self::Admin => "admin",
            Self::KubeScheduler => "system:kube-scheduler",
            Self::Phalanx => "phalanx",
        }
    }

    /// Its token. It opens a server on loopback that lives as long as a test.
    fn token(self) -> &'static str {
        match self {
            Self::Admin => "token-of-admin",
            Self::KubeScheduler => "token-of-kube-scheduler",
            Self::Phalanx => "token-of-phalanx",
        }
    }

    /// A line of the file that the server knows tokens from: token, user, number, groups.
    fn line(self) -> String {
        let groups = match self {
            Self::Admin => ",\"system:masters\"",
            Self::KubeScheduler | Self::Phalanx => "",
        };
        format!("{},{},{}{groups}\n", self.token(), self.user(), self.token())
    }

    /// Its kubeconfig in the folder of a control plane.
    pub(crate) fn kubeconfig(self, folder: &Path) -> PathBuf {
        folder.join(format!("{}.kubeconfig", self.token()))
    }
}

/// Files by which the API server and those who ask it know each other.
pub(crate) mod files {
    /// Who has which token.
    pub(crate) const TOKENS: &str = "tokens.csv";
    /// The certificate that signed the server's.
    pub(crate) const CA: &str = "ca.crt";
    /// The server's certificate and key.
    pub(crate) const CERTIFICATE: &str = "server.crt";
    pub(crate) const KEY: &str = "server.key";
    /// The key that service accounts' tokens are signed with, and its public half.
    pub(crate) const ACCOUNTS_KEY: &str = "accounts.key";
    pub(crate) const ACCOUNTS_PUBLIC: &str = "accounts.pub";
}

/// Writes all of them into the folder, for a server that listens at this port.
pub(crate) fn write(folder: &Path, port: u16) -> Result<(), Failure> {
    let put = |name: &str, text: String| {
        let path = folder.join(name);
        fs::write(&path, text).map_err(Failure::io(format!("{} can't be written", path.display())))
    };
    put(files::TOKENS, Identity::ALL.into_iter().map(Identity::line).collect())?;
    let made = certificates()?;
    put(files::CA, made.ca)?;
    put(files::CERTIFICATE, made.certificate)?;
    put(files::KEY, made.key)?;
    let accounts = KeyPair::generate()?;
    put(files::ACCOUNTS_KEY, accounts.serialize_pem())?;
    put(files::ACCOUNTS_PUBLIC, accounts.public_key_pem())?;
    for identity in Identity::ALL {
        let token = identity.token();
        write_kubeconfig(folder, port, &format!("{token}.kubeconfig"), token)?;
    }
    Ok(())
}

/// Writes the kubeconfig of who has this token; answers where it is.
pub(crate) fn write_kubeconfig(
    folder: &Path,
    port: u16,
    name: &str,
    token: &str,
) -> Result<PathBuf, Failure> {
    let path = folder.join(name);
    let failed = Failure::io(format!("{} can't be written", path.display()));
    fs::write(&path, kubeconfig(token, folder, port)).map_err(failed)?;
    Ok(path)
}

/// JSON, which is YAML as well.
fn kubeconfig(token: &str, folder: &Path, port: u16) -> String {
    let server = format!("https://127.0.0.1:{port}");
    let config = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{
            "name": "test",
            "cluster": {"server": server, "certificate-authority": folder.join(files::CA)},
        }],
        "users": [{"name": "user", "user": {"token": token}}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "user"}}],
        "current-context": "test",
    });
    config.to_string()
}

struct Certificates {
    ca: String,
    certificate: String,
    key: String,
}

/// A certificate of the server for loopback, and the one that signed it: clients refuse one that
/// signed itself.
fn certificates() -> Result<Certificates, Failure> {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.distinguished_name.push(DnType::CommonName, "Tests of Phalanx");
    let ca_key = KeyPair::generate()?;
    let ca = params.self_signed(&ca_key)?.pem();
    let issuer = Issuer::new(params, ca_key);
    let names = vec!["127.0.0.1".to_owned(), "localhost".to_owned()];
    let mut params = CertificateParams::new(names)?;
    params.distinguished_name.push(DnType::CommonName, "kube-apiserver");
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let key = KeyPair::generate()?;
    let certificate = params.signed_by(&key, &issuer)?.pem();
    Ok(Certificates { ca, certificate, key: key.serialize_pem() })
}
