//! Tools that are methods of a struct.

use std::collections::HashMap;
use std::fmt::Display;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Weak};

use helix_agents::tools;
use helix_agents_core::agent::Agent;
use helix_agents_core::json::Json;
use helix_agents_core::tool::{EffectClass, Tool, ToolContext, ToolError, ToolMethods};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::context;

#[derive(Debug, Deserialize, JsonSchema)]
struct Product {
    /// The name in the catalogue.
    name: String,
}

struct Shop {
    prices: HashMap<String, u32>,
    sold: AtomicU32,
}

impl Shop {
    fn open() -> Arc<Self> {
        let prices = HashMap::from([("tea".to_owned(), 4)]);
        Arc::new(Self { prices, sold: AtomicU32::new(0) })
    }
}

#[tools(crate = helix_agents_core)]
impl Shop {
    const CURRENCY: &'static str = "EUR";

    /// Look up
    /// a price.
    #[tool]
    async fn price(&self, input: Product) -> Result<String, ToolError> {
        self.find(&input.name).map(|price| format!("{price} {}", Self::CURRENCY))
    }

    /// Documented for developers.
    #[tool(name = "sell", description = "Sell a product.")]
    async fn sell_one(
        &self,
        Product { name }: Product,
        cx: &ToolContext,
    ) -> Result<u32, ToolError> {
        cx.record_usage("sales", 1.0);
        self.find(&name)?;
        Ok(self.sold.fetch_add(1, Ordering::Relaxed) + 1)
    }

    /// Count the sold products.
    #[helix_agents::tool]
    async fn sold(&self) -> Result<u32, std::num::ParseIntError> {
        tokio::task::yield_now().await;
        Ok(self.sold.load(Ordering::Relaxed))
    }

    /// Is named like a keyword.
    #[tool]
    #[cfg(test)]
    async fn r#match(&self, _cx: &ToolContext) -> Result<(), ToolError> {
        Ok(())
    }

    /// Is not compiled.
    #[tool]
    #[cfg(not(test))]
    async fn missing(&self) -> Result<Missing, ToolError> {
        Ok(Missing)
    }

    fn find(&self, name: &str) -> Result<u32, ToolError> {
        let price = self.prices.get(name).copied();
        price.ok_or_else(|| ToolError::new(format!("there is no price for `{name}`")))
    }
}

struct Labelled<L> {
    label: L,
}

#[tools(crate = helix_agents_core)]
impl<L> Labelled<L>
where
    L: Display + Send + Sync + 'static,
{
    /// Show the label.
    #[tool]
    async fn show(&self, input: String) -> Result<String, ToolError> {
        Ok(format!("{}: {input}", self.label))
    }
}

async fn call(tool: &Tool, cx: &ToolContext, input: Value) -> Result<Value, ToolError> {
    tool.invoke(&Json::from(input), cx.clone()).await.map(|output| output.to_value())
}

fn names(tools: &[Tool]) -> Vec<&str> {
    tools.iter().map(Tool::name).collect()
}

#[test]
fn every_marked_method_is_a_tool() {
    assert_eq!(names(&Shop::open().tools()), ["price", "sell", "sold", "match"]);
}

#[test]
fn the_description_is_the_doc_comment_or_the_argument() {
    let agent = Agent::builder("clerk")
        .system_prompt("Sell tea.")
        .tools(Shop::open().tools())
        .build()
        .unwrap();
    let specs = agent.erased();
    let specs = specs.effective_tools().specs();
    assert_eq!(&*specs[0].description, "Look up a price.");
    assert_eq!(&*specs[1].description, "Sell a product.");
}

#[tokio::test]
async fn tools_share_the_value_whose_methods_they_are() {
    let (shop, cx) = (Shop::open(), context());
    let (sell, sold) = (shop.sell_one_tool(), shop.sold_tool());
    assert_eq!(call(&sell, &cx, json!({"name": "tea"})).await.unwrap(), 1);
    assert_eq!(call(&sold, &cx, json!({})).await.unwrap(), 1);
    assert_eq!(shop.sold.load(Ordering::Relaxed), 1);
    assert_eq!(cx.effects().usage, [("sales".to_owned(), 1.0)]);
}

#[tokio::test]
async fn an_error_of_a_method_is_the_error_of_the_call() {
    let error = call(&Shop::open().price_tool(), &context(), json!({"name": "gold"})).await;
    assert_eq!(error.unwrap_err().message(), "there is no price for `gold`");
}

#[tokio::test]
async fn methods_stay_methods() {
    let shop = Shop::open();
    let tea = Product { name: "tea".to_owned() };
    assert_eq!(shop.price(tea).await.unwrap(), "4 EUR");
    shop.r#match(&context()).await.unwrap();
}

#[test]
fn options_can_be_set_on_one_tool() {
    let sell = Shop::open().sell_one_tool().effect(EffectClass::AtMostOnce);
    assert_eq!(sell.effect_class(), EffectClass::AtMostOnce);
}

#[tokio::test]
async fn a_block_can_be_generic() {
    let tools = Arc::new(Labelled { label: 7 }).tools();
    assert_eq!(call(&tools[0], &context(), json!("tea")).await.unwrap(), "7: tea");
}

#[test]
fn the_value_lives_as_long_as_its_tools() {
    let shop = Shop::open();
    let weak: Weak<Shop> = Arc::downgrade(&shop);
    let tools = shop.tools();
    drop(shop);
    assert!(weak.upgrade().is_some());
    drop(tools);
    assert!(weak.upgrade().is_none());
}
